"""Bigram language models with latent classes (ACL14, section 8; Saul and Pereira 1997).

V            the vocabulary; word 0 stands for every unknown word
w1 → w2      a bigram: w1 in V or the start of a sentence, w2 in V
m            number of latent states h
r(h | w1)    (|V| + 1, m): contexts; row |V| is the start of a sentence
s(w2 | h)    (|V|, m): words; columns sum to one
p(w2 | w1) = Σ_h r(h | w1) s(w2 | h)

sentences = corpus.read_sentences(path)
model = estimate.train_lm(sentences, dev, estimate.Options(estimator="pivot+em", states=256))
model.perplexity(test)
"""
