"""Results as JSON: the published types, and the functions that fill them. Nothing here decides.

One shape for the command line and JSON-RPC, pinned by golden files in the tests. Objects have camelCase names;
events keep the snake_case envelope. A name is a contract: add freely; changing one raises `CONTRACT_VERSION`.
"""

from typing import Final

CONTRACT_VERSION: Final = 1  # raised when a name changes its meaning
