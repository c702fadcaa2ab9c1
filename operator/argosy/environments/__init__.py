"""Engine environments on this machine: made by `argosy engines install`, by image builds and for tests.

What may live here: what an engine needs on which machine (`recipes`, pure), the commands of uv and pip (`tools`) and
how they are run (`running`), making an environment (`installing`), and what is installed (`inventory`). It imports
nothing that only the operator has, so it runs in the server's image, too.
"""
