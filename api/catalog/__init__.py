"""Models, accelerators and engines: the catalogue's, and those a workspace brought itself."""
