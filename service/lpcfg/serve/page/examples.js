/**
 * Sentences to begin with, written for this page: what each shows, for the gallery.
 */

export const EXAMPLES = [
  {
    name: "Who has the telescope?",
    text: "The old man saw the dog with a telescope in the park.",
    shows: "“With a telescope” may belong to the seeing or to the dog. A reader needs the story to "
      + "decide, and so does the parser: look at the share of the second reading.",
  },
  {
    name: "Short",
    text: "The small bird sang happily.",
    shows: "An easy one. What doubt is left is about labels: treebanks differ in how they "
      + "annotate adverbs.",
  },
  {
    name: "Coordination",
    text: "Old men and women who live near the river sell apples, pears and plums on Sundays.",
    shows: "Are the women old? And does “who live near the river” speak of all of them?",
  },
  {
    name: "A question",
    text: "Which of the letters that you wrote last summer did Peter never answer?",
    shows: "The object stands first, far from its verb. Questions are rarer in training text than "
      + "statements.",
  },
  {
    name: "Biomedical",
    text: "Loss of this protein in the mouse liver leads to a marked increase of glucose in the "
      + "blood, which suggests that it regulates the expression of several genes.",
    shows: "The kind of text that the model has read most of: chains of prepositional phrases.",
  },
  {
    name: "Garden path",
    text: "The horse raced past the barn fell.",
    shows: "“Raced” looks like the verb until “fell” comes. People stumble here as well.",
  },
  {
    name: "Noun or verb",
    text: "Time flies like an arrow, but fruit flies like a banana.",
    shows: "The same words twice, in different roles.",
  },
  {
    name: "That without that",
    text: "She said the man she had met the day before was the brother of her teacher.",
    shows: "Two clauses begin without a word to mark them.",
  },
  {
    name: "Numbers and names",
    text: "Anna Berg of Northern Rail paid more than 3,000 euros for 12 old bicycles in May 2019.",
    shows: "Names, a number of several words, a date.",
  },
  {
    name: "A fragment",
    text: "No trains today because of the snow.",
    shows: "There is no verb, so it is no clause. The parser has to say so.",
  },
  {
    name: "Everyday speech",
    text: "Well, I mean, you kind of have to see it to believe it, you know.",
    shows: "Speech is unlike written text: expect doubt.",
  },
  {
    name: "Nonsense",
    text: "Glippy wugs often blicked the fendle until zorp.",
    shows: "No word but the small ones is known: the endings tell what they may be.",
  },
  {
    name: "Long",
    text: "When the committee that had been asked to look into the delays finally published its "
      + "report last week, most of the people who had complained about the new trains were "
      + "surprised to learn that the company knew about the problem with the doors long before "
      + "the first of them left the factory, and that nobody had told the drivers what to do.",
    shows: "Many readings differ in where a phrase is attached. Few nodes are wrong all the same.",
  },
];
