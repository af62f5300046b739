"""The fast engine: a coarse pass prunes the chart, then compiled kernels run over what is left."""
