/**
 * Relations of Universal Dependencies in words for people, and the universal tags of words.
 */

export const RELATIONS = {
  acl: "clause that modifies a noun",
  advcl: "clause that modifies a verb or an adjective",
  advmod: "adverb that modifies",
  amod: "adjective that modifies a noun",
  appos: "another name for the same thing",
  aux: "auxiliary verb",
  "aux:pass": "auxiliary verb of a passive",
  case: "preposition or possessive ending",
  cc: "coordinating conjunction",
  ccomp: "clause as an object",
  compound: "part of a compound",
  "compound:prt": "particle of a verb",
  conj: "joined by a conjunction",
  cop: "form of be that links",
  csubj: "clause as a subject",
  dep: "relation that is not known better",
  det: "determiner",
  discourse: "interjection or filler",
  dislocated: "part moved to the edge of the clause",
  expl: "it or there without a meaning of its own",
  fixed: "part of a fixed expression",
  flat: "part of a name or a date",
  goeswith: "part of a word that was written apart",
  iobj: "indirect object",
  list: "item of a list",
  mark: "word that begins a subordinate clause",
  nmod: "noun that modifies a noun",
  "nmod:poss": "possessor",
  nsubj: "subject",
  "nsubj:pass": "subject of a passive",
  nummod: "number of things",
  obj: "object",
  obl: "noun that modifies a verb or an adjective",
  "obl:agent": "who does it, in a passive",
  orphan: "its head is left out",
  parataxis: "clause placed beside another",
  punct: "punctuation",
  reparandum: "what a speaker takes back",
  root: "the head of the sentence",
  vocative: "who is spoken to",
  xcomp: "clause or adjective without a subject of its own",
};

const TAGS = {
  ADJ: "adjective",
  ADP: "preposition or particle",
  ADV: "adverb",
  AUX: "auxiliary verb",
  CCONJ: "coordinating conjunction",
  DET: "determiner",
  INTJ: "interjection",
  NOUN: "noun",
  NUM: "number",
  PART: "not, to or a possessive ending",
  PRON: "pronoun",
  PROPN: "proper noun",
  PUNCT: "punctuation",
  SCONJ: "subordinating conjunction",
  SYM: "symbol",
  VERB: "verb",
  X: "other",
};

/** What a relation means: a subtype without words of its own means what its relation does. */
export function relationMeaning(relation) {
  return RELATIONS[relation] ?? RELATIONS[relation.split(":")[0]] ?? null;
}

/** What a universal tag means; null where this page does not know it. */
export function universalMeaning(tag) {
  return TAGS[tag] ?? null;
}
