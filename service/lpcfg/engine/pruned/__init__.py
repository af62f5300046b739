"""The fast engine: a coarse pass prunes the chart, compiled kernels run over it."""
