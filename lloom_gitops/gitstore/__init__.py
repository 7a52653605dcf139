"""The only module that touches git: reads trees, makes commits by plumbing, pushes by compare-and-swap."""
