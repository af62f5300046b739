"""Dependency trees: read, learn and parse them, and compute their probabilities.

arcs          the value: a head and a relation for every word; projectivity
conllu        CoNLL-U in and out, without loss
head_rules    arcs of constituency trees
eisner        projective trees of arc scores: sums, marginals, the best
network       scores of arcs, relations and tags; inputs, gradients and learning beside it
model         what is stored;  train, card  how it gets there;  predict, answer  what answers
spectral      p(words | topology), Algorithm 1 of the dependency paper, corrected
expansion     dependency trees as trees of an L-PCFG, and back
evaluate      attachment scores, calibration
"""
