"""`python -m structdump` is the command line."""

from structdump.cli import main

raise SystemExit(main())
