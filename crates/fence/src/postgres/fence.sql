-- The fence of kunci for PostgreSQL: turns away writers whose fencing token is older than one that was admitted.
-- Version 1. Written for PostgreSQL 13 and later, tested with 15.
--
-- Install it, or install it again, with any client, as the role that shall own it: it is one transaction, it changes
-- nothing that is there already, and it refuses to take the place of a newer version. How it is used, and what it
-- can't do: docs/fencing.md of kunci.
--
-- SQLSTATEs (class KF is ours):
--   KF001  rejected: a newer token was admitted before. Final; don't retry with this token.
--   KF002  no token: neither kunci.admit was called, nor is kunci.token set.
--   KF003  what was given as a token is no whole number from 1 to 2^53 - 1.
--   KF004  what was given as a resource's name can't be one.
--   KF005  the resource that was admitted or set isn't the one that this table is bound to.
--   KF006  the fence can't be installed or changed like this.
-- Retriable are PostgreSQL's own 40001 (REPEATABLE READ and SERIALIZABLE: a newer token came in between) and 40P01.
-- The retry then gets KF001, or goes through.
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

DO $$
DECLARE
  owner name;
  installed integer;
BEGIN
  -- Two installations at a time wait for each other.
  PERFORM pg_advisory_xact_lock(7400, 1);
  SELECT pg_get_userbyid(nspowner) INTO owner FROM pg_namespace WHERE nspname = 'kunci';
  IF owner IS NULL THEN
    CREATE SCHEMA kunci;
  ELSIF owner <> current_user THEN
    -- Somebody else's schema could have functions that do something else tomorrow.
    RAISE EXCEPTION 'schema kunci belongs to role %, and this is role %', owner, current_user
      USING ERRCODE = 'KF006', HINT = format('install as its owner: SET ROLE %I', owner);
  ELSIF to_regprocedure('kunci.fence_version()') IS NOT NULL THEN
    EXECUTE 'SELECT kunci.fence_version()' INTO installed;
    IF installed > 1 THEN
      RAISE EXCEPTION 'version % of the fence is installed, and this is version 1', installed
        USING ERRCODE = 'KF006', HINT = 'install with a kunci that is at least as new';
    END IF;
  END IF;
END
$$;

-- The newest token that was admitted, for each resource. Only the functions below write it.
CREATE TABLE IF NOT EXISTS kunci.fence (
  resource text COLLATE "C" PRIMARY KEY,
  token bigint NOT NULL CHECK (token BETWEEN 1 AND 9007199254740991),
  raised_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- What counts for a resource that isn't in the table above: the largest token that kunci.forget dropped.
CREATE TABLE IF NOT EXISTS kunci.fence_floor (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  token bigint NOT NULL CHECK (token BETWEEN 0 AND 9007199254740991)
);
INSERT INTO kunci.fence_floor (token) VALUES (0) ON CONFLICT DO NOTHING;

CREATE OR REPLACE FUNCTION kunci.fence_version() RETURNS integer
LANGUAGE sql IMMUTABLE AS 'SELECT 1';

-- Refuses what no lock is called; never rewrites it. The rules are those of kunci's resource names.
CREATE OR REPLACE FUNCTION kunci.assert_name(name text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fault text;
BEGIN
  IF name IS NULL OR name = '' THEN
    fault := 'is empty: expected 1 to 256 bytes';
  ELSIF octet_length(name) > 256 THEN
    fault := format('has %s bytes: expected 1 to 256', octet_length(name));
  ELSIF name ~ '[[:cntrl:]]' THEN
    fault := 'has a control character';
  ELSIF name ~ '^[[:space:]]|[[:space:]]$' THEN
    fault := 'begins or ends with white space';
  ELSIF octet_length(name) > length(name) AND getdatabaseencoding() = 'UTF8' AND name IS NOT NFC NORMALIZED THEN
    fault := 'is not in Unicode NFC';
  ELSE
    RETURN;
  END IF;
  RAISE EXCEPTION 'resource name % %', coalesce(quote_literal(left(name, 64)), 'NULL'), fault USING ERRCODE = 'KF004',
    HINT = 'a resource is the name of a lock in kunci, exactly as it was acquired';
END
$$;

-- Compares a token with what is kept and, when it is newer, keeps it; both hold until the transaction ends.
CREATE OR REPLACE FUNCTION kunci.compare_and_keep(resource text, token bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  kept bigint;
  -- Row locks keep the order of writes, but not of arrival: transactions of an older token that overlap without end would
  -- let a newer one wait for ever. Advisory locks queue. Nothing but the waiting time depends on them.
  queue bigint := hashtextextended(compare_and_keep.resource, 7400);
BEGIN
  PERFORM kunci.assert_name(compare_and_keep.resource);
  IF compare_and_keep.token NOT BETWEEN 1 AND 9007199254740991 THEN
    RAISE EXCEPTION 'fencing token % is out of range: expected 1 to 9007199254740991', compare_and_keep.token
      USING ERRCODE = 'KF003';
  END IF;
  -- Each turn reads with a snapshot of its own under READ COMMITTED. A stricter isolation level has one snapshot: what
  -- others committed since makes the locking statements fail with 40001. Either way a second turn ends the loop,
  -- unless kunci.forget came in between.
  LOOP
    -- Only shows the way. Nothing is decided by it that a newer token could overturn: tokens never go down.
    SELECT f.token INTO kept FROM kunci.fence f WHERE f.resource = compare_and_keep.resource;
    IF kept = compare_and_keep.token THEN
      -- The same holder's transactions go side by side, and together hold off a newer token until they end.
      PERFORM pg_advisory_xact_lock_shared(queue);
      SELECT f.token INTO kept FROM kunci.fence f WHERE f.resource = compare_and_keep.resource FOR SHARE;
      EXIT WHEN kept = compare_and_keep.token;
      CONTINUE;
    END IF;
    IF kept IS NULL THEN
      SELECT l.token INTO kept FROM kunci.fence_floor l FOR SHARE;
    END IF;
    IF kept > compare_and_keep.token THEN
      RAISE EXCEPTION 'fencing token % for resource % is rejected: % was admitted before',
          compare_and_keep.token, quote_literal(compare_and_keep.resource), kept
        USING ERRCODE = 'KF001',
          DETAIL = json_build_object(
            'resource', compare_and_keep.resource, 'token', compare_and_keep.token, 'current', kept)::text,
          HINT = 'the lock has a newer holder: stop, and do not retry with this token';
    END IF;
    -- Waits for every transaction that was admitted with an older token.
    PERFORM pg_advisory_xact_lock(queue);
    INSERT INTO kunci.fence AS f (resource, token, raised_at)
      VALUES (compare_and_keep.resource, compare_and_keep.token, clock_timestamp())
      ON CONFLICT (resource) DO UPDATE SET token = excluded.token, raised_at = excluded.raised_at
      WHERE f.token < excluded.token;
    EXIT WHEN FOUND;
  END LOOP;
END
$$;

-- To be called first in a transaction, as a statement of its own and before anything is read that decides what is
-- written: what follows sees all that older tokens have written, and nothing of them comes after it.
CREATE OR REPLACE FUNCTION kunci.admit(resource text, token bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF admit.token IS NULL THEN
    RAISE EXCEPTION 'no fencing token for resource %', coalesce(quote_literal(admit.resource), 'NULL')
      USING ERRCODE = 'KF002', HINT = 'pass the token that came with the lock';
  END IF;
  PERFORM kunci.compare_and_keep(admit.resource, admit.token);
  -- For guarded tables, until the transaction or the savepoint around it ends.
  PERFORM set_config('kunci.resource', admit.resource, true), set_config('kunci.token', admit.token::text, true);
  RETURN admit.token;
END
$$;

-- The token of the session or transaction; a refusal names the table, if there is one.
CREATE OR REPLACE FUNCTION kunci.token_set(written text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  given text := current_setting('kunci.token', true);
BEGIN
  -- An empty text is what a setting leaves behind that was local to an earlier transaction.
  IF given IS NULL OR given = '' THEN
    RAISE EXCEPTION 'no fencing token%', coalesce(' for table ' || written, '') USING ERRCODE = 'KF002',
      HINT = 'call kunci.admit(resource, token) first, or set kunci.resource and kunci.token';
  END IF;
  IF given !~ '^[1-9][0-9]{0,15}$' OR given::bigint > 9007199254740991 THEN
    RAISE EXCEPTION 'kunci.token is %: expected a whole number from 1 to 9007199254740991', quote_literal(left(given, 64))
      USING ERRCODE = 'KF003';
  END IF;
  RETURN given::bigint;
END
$$;

-- The same with what the session or transaction has set: for programs that `kunci exec --fence-postgres` runs.
CREATE OR REPLACE FUNCTION kunci.admit() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN kunci.admit(current_setting('kunci.resource', true), kunci.token_set(NULL));
END
$$;

-- Guards a table. Its arguments say what the table is bound to: ('resource', name) or ('prefix', beginning of names).
CREATE OR REPLACE FUNCTION kunci.guard() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  written text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  given bigint := kunci.token_set(written);
  resource text := nullif(current_setting('kunci.resource', true), '');
BEGIN
  IF TG_ARGV[0] = 'resource' THEN
    resource := coalesce(resource, TG_ARGV[1]);
  END IF;
  IF resource IS NULL
    OR (TG_ARGV[0] = 'resource' AND resource <> TG_ARGV[1] COLLATE "C")
    OR (TG_ARGV[0] = 'prefix' AND NOT starts_with(resource, TG_ARGV[1]))
  THEN
    RAISE EXCEPTION 'table % is bound to % %, and the resource is %', written, TG_ARGV[0], quote_literal(TG_ARGV[1]),
        coalesce(quote_literal(left(resource, 256)), 'not set')
      USING ERRCODE = 'KF005', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
        HINT = 'call kunci.admit with the resource that guards this table, and its token, before you write it';
  END IF;
  PERFORM kunci.compare_and_keep(resource, given);
  RETURN NULL;
END
$$;

-- The table, and what inherits from it: partitions, too.
CREATE OR REPLACE FUNCTION kunci.family(target regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE family (member) AS (
    SELECT target::oid UNION SELECT i.inhrelid FROM family JOIN pg_inherits i ON i.inhparent = member
  )
  SELECT member::regclass FROM family
$$;

-- What a guard is bound to: its arguments, which the catalogue keeps as bytes with a zero after each.
CREATE OR REPLACE FUNCTION kunci.binding(arguments bytea, OUT kind text, OUT name text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT convert_from(substring(arguments FOR middle - 1), getdatabaseencoding()),
    convert_from(substring(arguments FROM middle + 1 FOR octet_length(arguments) - middle - 1), getdatabaseencoding())
  FROM position('\x00'::bytea IN arguments) AS middle
$$;

CREATE OR REPLACE FUNCTION kunci.bind(target regclass, kind text, name text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
  member regclass;
BEGIN
  IF (SELECT relkind NOT IN ('r', 'p', 'f') FROM pg_class WHERE oid = target) THEN
    RAISE EXCEPTION '% is not a table', target USING ERRCODE = 'KF006', HINT = 'protect the tables below it';
  END IF;
  PERFORM kunci.assert_name(bind.name);
  FOR member IN SELECT kunci.family(target) LOOP
    -- A guard that is right stays, so that nobody waits for a lock on the table.
    CONTINUE WHEN EXISTS (
      SELECT FROM pg_trigger t, kunci.binding(t.tgargs) b
      WHERE t.tgrelid = member AND t.tgname = 'kunci_fence' AND t.tgfoid = 'kunci.guard()'::regprocedure
        AND t.tgtype = 62 AND t.tgqual IS NULL AND t.tgattr::text = '' AND t.tgenabled IN ('O', 'A')
        AND b.kind = bind.kind AND b.name = bind.name COLLATE "C"
    );
    EXECUTE format('DROP TRIGGER IF EXISTS kunci_fence ON %s', member);
    EXECUTE format('CREATE TRIGGER kunci_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
      'FOR EACH STATEMENT EXECUTE FUNCTION kunci.guard(%L, %L)', member, bind.kind, bind.name);
  END LOOP;
END
$$;

-- From now on a table, with its partitions and children, takes writes under this resource's token only. To be called
-- again after a partition was added.
CREATE OR REPLACE FUNCTION kunci.protect(target regclass, resource text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT kunci.bind(target, 'resource', resource) $$;

-- The same for a table that many resources share: their names begin with the prefix, as in `orders/`. The guard sees
-- statements, not rows: it can't tell whether the holder of orders/42 writes the rows of 42.
CREATE OR REPLACE FUNCTION kunci.protect_prefix(target regclass, prefix text) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$ SELECT kunci.bind(target, 'prefix', prefix) $$;

CREATE OR REPLACE FUNCTION kunci.unprotect(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET client_min_messages = warning AS $$
DECLARE
  member regclass;
BEGIN
  FOR member IN SELECT kunci.family(target) LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS kunci_fence ON %s', member);
  END LOOP;
END
$$;

-- Drops resources that saw no new token for this long, and keeps the largest of their tokens as the floor for all that
-- have none of their own: tokens grow across all locks of a cluster, so no older writer gets through for it. A lease
-- that was held for longer, and now writes for the first time, is rejected.
CREATE OR REPLACE FUNCTION kunci.forget(idle interval DEFAULT '30 days') RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  forgotten bigint;
  largest bigint;
BEGIN
  IF idle IS NULL OR idle < '24 hours' THEN
    RAISE EXCEPTION 'a resource can be forgotten after %: expected 24 hours or more', coalesce(idle::text, 'NULL')
      USING ERRCODE = 'KF006', HINT = 'a lease may be held as long as kunci''s policy allows, by default 24 hours';
  END IF;
  PERFORM FROM kunci.fence_floor FOR UPDATE;
  WITH gone AS (
    DELETE FROM kunci.fence WHERE resource IN (
      SELECT f.resource FROM kunci.fence f WHERE f.raised_at < now() - idle FOR UPDATE SKIP LOCKED
    ) RETURNING token
  )
  SELECT count(*), max(token) INTO forgotten, largest FROM gone;
  UPDATE kunci.fence_floor SET token = largest WHERE token < largest;
  RETURN forgotten;
END
$$;

-- Each guarded table, what it is bound to, and what is wrong with it.
CREATE OR REPLACE VIEW kunci.protected AS
  WITH guards AS (
    SELECT t.*, b.kind, b.name FROM pg_trigger t, kunci.binding(t.tgargs) b
    WHERE t.tgfoid = 'kunci.guard()'::regprocedure AND NOT t.tgisinternal
  )
  SELECT format('%I.%I', n.nspname, c.relname) AS table_name, g.kind, g.name,
    CASE
      WHEN t.tgenabled = 'D' THEN 'its guard is disabled: protect it again'
      WHEN t.tgenabled = 'R' THEN 'its guard works for replication only: protect it again'
      WHEN t.tgtype <> 62 OR t.tgqual IS NOT NULL OR t.tgattr::text <> '' THEN 'its guard leaves out some writes: protect it again'
      WHEN t.oid IS NULL THEN 'it inherits from a guarded table and has no guard: protect that again'
      WHEN (t.kind, t.name) IS DISTINCT FROM (g.kind, g.name) THEN 'it is bound otherwise than the table that it inherits from: protect that again'
    END AS fault
  FROM guards g
    CROSS JOIN LATERAL kunci.family(g.tgrelid) AS member
    JOIN pg_class c ON c.oid = member
    JOIN pg_namespace n ON n.oid = c.relnamespace
    LEFT JOIN guards t ON t.tgrelid = member
  -- A member of a family is told of once, by the topmost guarded table.
  WHERE NOT EXISTS (SELECT FROM guards other WHERE other.tgrelid <> g.tgrelid
    AND g.tgrelid IN (SELECT kunci.family(other.tgrelid)));

-- What is wrong with the fence itself.
CREATE OR REPLACE FUNCTION kunci.faults() RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('role %s may change table kunci.%I past the fence: REVOKE it',
      CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END, c.relname)
  FROM pg_class c, aclexplode(c.relacl) a
  WHERE c.relnamespace = 'kunci'::regnamespace AND c.relkind = 'r' AND a.grantee <> c.relowner
    AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER')
  GROUP BY a.grantee, c.relname
UNION ALL
  SELECT format('role %s may create objects in schema kunci: REVOKE it',
      CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
  FROM pg_namespace n, aclexplode(n.nspacl) a
  WHERE n.nspname = 'kunci' AND a.grantee <> n.nspowner AND a.privilege_type = 'CREATE'
UNION ALL
  SELECT format('kunci.%I belongs to role %s, and the schema to %s', p.proname, p.proowner::regrole, n.nspowner::regrole)
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE n.nspname = 'kunci' AND p.proowner <> n.nspowner
UNION ALL
  SELECT 'table kunci.fence_floor is empty: install again' WHERE NOT EXISTS (SELECT FROM kunci.fence_floor)
$$;

-- Writing a guarded table needs no right on anything here. Who calls kunci.admit by hand needs two, which the owner
-- gives: USAGE on the schema and EXECUTE on the function.
REVOKE ALL ON SCHEMA kunci FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA kunci FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA kunci FROM PUBLIC;

COMMENT ON SCHEMA kunci IS 'The fence of kunci: turns away writers whose fencing token is older than one that was admitted';
COMMENT ON TABLE kunci.fence IS 'The newest admitted token of each resource; written by the functions of this schema only';
COMMENT ON VIEW kunci.protected IS 'Each guarded table, what it is bound to, and what is wrong with it';
COMMIT;
