"""LeafMesh: meshes of agents that call each other on conditions, in `config.yaml`."""
