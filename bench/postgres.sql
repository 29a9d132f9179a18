-- The rival of `./dev bench ledger`: double entry in PostgreSQL, as one would write it by hand.
-- Amounts are bigint, half of what the ledger's are, in favour of the rival. :accounts is set by the
-- caller.
CREATE TABLE account (
    id bigint PRIMARY KEY,
    balance bigint NOT NULL CHECK (balance >= 0)
) WITH (fillfactor = 70);
CREATE TABLE entry (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id uuid NOT NULL UNIQUE,
    debit bigint NOT NULL,
    credit bigint NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    at timestamptz NOT NULL DEFAULT now()
);
INSERT INTO account SELECT i, 1 << 30 FROM generate_series(1, :accounts) AS i;

-- One transfer: both rows locked in order, the debit checked, one entry written.
CREATE FUNCTION transfer(key uuid, source bigint, target bigint, value bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    place bigint;
BEGIN
    PERFORM 1 FROM account WHERE id IN (source, target) ORDER BY id FOR UPDATE;
    UPDATE account SET balance = balance - value WHERE id = source AND balance >= value;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the debit account has too little';
    END IF;
    UPDATE account SET balance = balance + value WHERE id = target;
    INSERT INTO entry (id, debit, credit, amount) VALUES (key, source, target, value)
        RETURNING seq INTO place;
    RETURN place;
END $$;

-- A batch, all or nothing: rows are drawn here, so that the rival pays for no transport at all.
-- Each account is locked and changed once; CHECK (balance >= 0) is its limit.
CREATE FUNCTION transfer_batch(count integer, accounts bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    place bigint;
BEGIN
    CREATE TEMP TABLE IF NOT EXISTS wanted (id uuid, debit bigint, credit bigint, amount bigint)
        ON COMMIT DELETE ROWS;
    INSERT INTO wanted
        SELECT gen_random_uuid(), source, 1 + (source + step) % accounts, 1
        FROM (SELECT 1 + floor(random() * accounts)::bigint AS source,
                     floor(random() * (accounts - 1))::bigint AS step
              FROM generate_series(1, count)) AS drawn;
    PERFORM 1 FROM account
        WHERE id IN (SELECT debit FROM wanted UNION SELECT credit FROM wanted)
        ORDER BY id FOR UPDATE;
    UPDATE account SET balance = balance + delta::bigint
        FROM (SELECT id, sum(change) AS delta
              FROM (SELECT debit AS id, -amount AS change FROM wanted
                    UNION ALL SELECT credit, amount FROM wanted) AS moves
              GROUP BY id) AS changes
        WHERE account.id = changes.id;
    INSERT INTO entry (id, debit, credit, amount)
        SELECT id, debit, credit, amount FROM wanted;
    SELECT max(seq) INTO place FROM entry;
    RETURN place;
END $$;
