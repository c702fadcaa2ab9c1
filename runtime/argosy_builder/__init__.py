"""The program of an engine-build Job: fetch the model, build, read back, check the accuracy, publish.

What may live here: the frame (`build`, from the request to the published engine), what every builder shares
(`contract`, `process` for tools that may die, `reporter`), one sub-package a builder, `accuracy` and `data` for the
gate. A builder is imported when a request names it. The server imports nothing of this package.
"""
