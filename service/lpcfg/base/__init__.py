"""The parts that all rooms build on: errors, cancelling, processes, compiled kernels."""
