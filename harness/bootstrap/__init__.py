"""From a machine with only Debian, root and Python to a running engine and the base image.

`engine` finds or starts a container engine, `base_image` finds, pulls or builds the image that the bundled tasks run
in, `doctor` says what works here and what to do about the rest. Each decides in a pure function over a record of
facts and acts outside it. Nothing here prints, except the command `python -m harness.bootstrap`.
"""
