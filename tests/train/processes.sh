#!/usr/bin/env bash
# Sourced by tests of several processes, after command.sh: rank.sh starts weft as one of them. A process notes its number
# in pid.RANK before it becomes weft, and the one that OTHER_RANK names gets OTHER_ARGUMENTS, too.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
cat >rank.sh <<END
#!/usr/bin/env bash
rank=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-0}}
echo \$\$ >pid.\$rank
if [ "\$rank" = "\${OTHER_RANK:-none}" ]; then
    set -- "\$@" \$OTHER_ARGUMENTS
fi
exec "${weft:?}" "\$@"
END
chmod +x rank.sh

# has_mpi NAME: is openmpi or mpich there? Says so if it is not.
has_mpi() {
    [ -e "$(dirname "$weft")/libweft-$1.so" ] && command -v "mpirun.$1" >/dev/null && return
    echo "skipped: $1 is not installed"
    return 1
}
