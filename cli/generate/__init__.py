"""Makes what is derived from the catalog and the settings: reference pages and golden contract.

It stands in ``cli`` because only the top layer may see the settings of every process. It adds no
fact of its own: what a page lacks is missing at the declaration.
"""
