"""Reports: a model as one page of plots, in one file, without network or scripts."""
