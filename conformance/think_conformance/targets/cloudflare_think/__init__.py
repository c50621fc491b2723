"""Cloudflare's own Think as a target: recipes by version, one worker, and its known deviations.

`recipe.py` what a version is made of and where it is kept; `install.py` the one-time installation;
`__main__.py` the two commands of the target files.
"""
