"""Constituency trees: parse, evaluate and store them.

model             what is stored, and its form: members, layer, surprisal, checks
predict           the parser; loading makes one soon
readout           a chart as trees, labelled spans, tags and probabilities
results           the values that answers are made of;  answer  the same as JSON
tree_probability  log p(tree) and log p(tree | sentence);  known  of known grammars
evaluate          F1, calibration and speed against gold trees; brackets, comparison, suite
"""
