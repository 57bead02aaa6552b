"""Makes what is derived from the catalog and the settings: reference pages and golden contract.

It is part of ``cli`` because only the top layer may import the settings of every process. It adds
no facts of its own: what a page lacks is missing from the declaration.
"""
