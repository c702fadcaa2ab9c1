"""Environments that models' processes run in: an interpreter with its packages, the server's or another.

What may live here: the value that a process is started by (`process`), what another interpreter reports of itself
(`inspection`, `probe`), where engine environments are (`engines`), a model's own one (`execution_env`, `unpacked`), and
which one a model gets (`choice`). A process of another interpreter runs the server's code with the environment's
packages; packages that the environment lacks are the server's, where both run the same Python.
"""
