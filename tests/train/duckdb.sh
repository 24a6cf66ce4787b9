#!/usr/bin/env bash
# Sourced by tests of Parquet files, after command.sh. The library is that of DuckDB's Python package, which needs the
# symbols of Python: `make duckdb` fetches it.

# need_duckdb TEST: skips the test if the library is not there, unless it has failed already.
need_duckdb() {
    packages=${WEFT_BINARY_DIR:-$(dirname "${weft:?}")}/duckdb
    duckdb=$(compgen -G "$packages/_duckdb*.so" | head -1)
    python=$(PYTHONPATH=$packages python3 -c 'import duckdb, sysconfig
print(sysconfig.get_config_var("LIBDIR") + "/" + sysconfig.get_config_var("INSTSONAME"))' 2>/dev/null)
    if [ "${fail:?}" = 0 ] && { [ -z "$duckdb" ] || [ ! -f "$python" ] || ldd "$weft" | grep -q 'lib[a-z]*san\.so'; }; then
        echo "$1: skipped, DuckDB or the shared library of Python is not there (make duckdb), or sanitizers watch"
        exit 77
    fi
    export WEFT_DUCKDB_LIB=$duckdb
}

# with_python COMMAND ...: runs a command that may open the library.
python=
with_python() { LD_PRELOAD=$python "$@"; }

# in_duckdb: runs a program of Python from standard input, which may import duckdb.
in_duckdb() { PYTHONPATH=$packages python3 -; }
