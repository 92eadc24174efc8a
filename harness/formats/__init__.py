"""Task formats on disk: Harbor's task directory, families of variants, suites of both, their lock and their lint."""
