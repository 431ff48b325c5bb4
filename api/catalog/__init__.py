"""Models and accelerators: the catalogue's, and those a workspace brought itself."""
