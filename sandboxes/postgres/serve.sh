# Make the cluster at the first start, then serve it.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    umask 077
    printf '%s' "${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}" > /tmp/password
    initdb --username=toolenvs --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 >/dev/null
    rm /tmp/password
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
fi
# A hostile statement meets these before the disk is full.
exec postgres -c listen_addresses='*' -c temp_file_limit=1GB -c max_connections=200
