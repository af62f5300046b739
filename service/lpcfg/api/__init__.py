"""The Python API: what `import lpcfg` offers beside the classes of other rooms."""
