"""The whole stack on one machine: an embedded AWS, the real deployment, and a demo on real input."""
