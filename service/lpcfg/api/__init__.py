"""The Python API: the functions of `import lpcfg`. Its classes are in other rooms."""
