"""The folder that a server reads its models from: what of it changes when (`repository`), and how files come to stand
there (`placing`). A `target` is one model as the folder should hold it. It asks no server and fetches nothing.
"""
