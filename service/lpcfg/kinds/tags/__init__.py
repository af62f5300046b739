"""Refinement HMMs: tags of words with latent states (JMLR, section 9; Stratos et al. 2013).

chains      tagged sentences as right-branching trees, which every estimator learns from
kernel      forward-backward over them: the same as inside-outside, in O(n T² m²)
predict     tags and their probabilities for sentences
train       tagged sentences → a model in the store
evaluate    accuracy, calibration and speed against gold tags
"""
