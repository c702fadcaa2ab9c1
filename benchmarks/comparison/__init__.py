"""Two servers under the same loads, in rounds that alternate between them; by NVIDIA's load generator."""
