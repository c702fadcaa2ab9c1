"""The folder that a server reads its models from: the order of changes to it (`repository`, `tritonfolder`), and the
writing of files (`writing`). A `target` is the desired folder of one model. Nothing here calls a server or fetches.
"""
