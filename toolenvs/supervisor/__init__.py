"""The program inside every sandbox: standard library only, relative imports only.

``boot.py`` starts it as the package ``supervisor`` without putting any folder on ``sys.path``, so
that the code it runs cannot import, or even find, its modules by accident.

``server`` forks one child for each sandbox and never sees a payload; ``child`` is what such a fork
becomes; ``house`` makes the namespaces for the runtime ``local`` and then starts ``server``;
``nest`` does in a container without privileges what is needed there, and ``trial`` tells whether
that works.
"""
