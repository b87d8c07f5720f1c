"""Scripts that `recbert benchmark` starts by path, each in an environment of its own.

They import each other by file name and nothing of this package (but for
`recbert_worker`): the environment of a peer has none of it.
"""
