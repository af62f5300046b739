"""Eigenwords: vectors of words by canonical correlation with their contexts, from raw text.

corpus        text → numbers of words, spilled to disk
bigrams       numbers → how often which word follows which, sparse, spilled to disk
svd           the largest singular values and vectors of an operator
neighbours    one-step and two-step CCA of words with their neighbours
lr_mvl        CCA of words with exponentially smoothed contexts
cca           text → Eigenwords, by one of these
eigenwords    the value: words, their vectors, look-up
context       vectors of tokens in their context
files         eigenwords as safetensors and as word2vec's text

from lpcfg.words.cca import EigenwordOptions, learn
words = learn(sentences, [Path("text.txt.gz")], EigenwordOptions(dimensions=100))
words.vector("kinase")
"""
