/**
 * Sentences to begin with, written for this page.
 */

export const EXAMPLES = [
  {
    name: "Who has the telescope?",
    text: "The old man saw the dog with a telescope in the park.",
  },
  {
    name: "Short",
    text: "The small bird sang happily.",
  },
  {
    name: "Coordination",
    text: "Old men and women who live near the river sell apples, pears and plums on Sundays.",
  },
  {
    name: "Several sentences",
    text: "Anna opened the window. Did she hear the rain? Nobody knows what she thought, but "
      + "she stayed there until the bells began to ring.",
  },
  {
    name: "A question",
    text: "Which of the letters that you wrote last summer did Peter never answer?",
  },
  {
    name: "Biomedical",
    text: "Loss of this protein in the mouse liver leads to a marked increase of glucose in the "
      + "blood, which suggests that it regulates the expression of several genes.",
  },
  {
    name: "Long",
    text: "When the committee that had been asked to look into the delays finally published its "
      + "report last week, most of the people who had complained about the new trains were "
      + "surprised to learn that the company knew about the problem with the doors long before "
      + "the first of them left the factory, and that nobody had told the drivers what to do.",
  },
];
