"""Eigenwords: vectors of words by canonical correlation with their contexts, from raw text.

corpus        text → numbers of words, spilled to disk
bigrams       numbers → how often which word follows which, sparse, spilled to disk
svd           the largest singular values and vectors of an operator
cca           one-step CCA of words and their neighbours → Eigenwords
eigenwords    the value: words, their vectors, look-up

from lpcfg.words.cca import Options, learn
words = learn(sentences, [Path("text.txt.gz")], Options(dimensions=100))
words.vector("kinase")
"""
