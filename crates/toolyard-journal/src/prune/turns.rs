//! Which turns go, and their removal (JR-13).

use crate::{
    listing::{after_turn, list, of_turn},
    schema::PLACES,
};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::collections::BTreeSet;

/// How many turns are removed in one transaction.
const STEP: i64 = 20;

/// A turn: the row of its session, and its number.
type TurnId = (i64, i64);

/// One pass through the turns that had begun when it began.
pub(super) struct Scan {
    /// The first batch of the last turn that was looked at.
    after: i64,
    /// The last batch of the pass.
    last: i64,
}

impl Scan {
    pub(super) fn begin(db: &Connection) -> rusqlite::Result<Self> {
        let last = db.query_row("SELECT coalesce(max(id), 0) FROM batch_rows", [], |row| row.get(0))?;
        Ok(Self { after: 0, last })
    }

    /// Those of the next turns that began before this time and may go; `None` once all were looked at. Read without keeping
    /// a writer out, which may open something of them meanwhile.
    pub(super) fn next(
        &mut self,
        db: &mut Connection,
        before: i64,
    ) -> rusqlite::Result<Option<BTreeSet<TurnId>>> {
        let tx = db.transaction_with_behavior(TransactionBehavior::Deferred)?;
        let began = format!(
            "SELECT id, session, turn FROM batch_rows b WHERE id > ?1 AND id <= ?2 AND arrived_ms < ?3
             AND NOT EXISTS (SELECT 1 FROM ({}) WHERE batch < b.id) ORDER BY id LIMIT ?4",
            of_turn("b.session", "b.turn")
        );
        let rows = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
        let found: Vec<(i64, TurnId)> = tx
            .prepare_cached(&began)?
            .query_map([self.after, self.last, before, STEP], rows)?
            .collect::<Result<_, _>>()?;
        let Some((first, _)) = found.last() else { return Ok(None) };
        self.after = *first;
        removable(&tx, found.into_iter().map(|(_, turn)| turn)).map(Some)
    }
}

/// Those of these turns of which nothing is kept.
fn removable(
    tx: &Transaction<'_>,
    turns: impl IntoIterator<Item = TurnId>,
) -> rusqlite::Result<BTreeSet<TurnId>> {
    let mut all = BTreeSet::new();
    for turn in turns {
        if !is_kept(tx, turn)? {
            all.insert(turn);
        }
    }
    Ok(all)
}

/// Whether this turn stays: something of it is open, or of what belongs to it: the calls whose handlers have dispatched it,
/// what its handlers have dispatched, and the turns of these. Or it, or one of these, is the newest turn of an agent of an
/// epoch that goes on: another batch of it may come. What handlers have dispatched is over with their call. A turn that is gone
/// joins no others any more: all of them had ended when it went.
fn is_kept(tx: &Transaction<'_>, (session, turn): TurnId) -> rusqlite::Result<bool> {
    tx.prepare_cached(&kept())?.query_row(params![session, turn], |row| row.get(0))
}

/// The query of that, for the turn `?2` of the session `?1`.
fn kept() -> String {
    // In this order of joins: otherwise some versions of SQLite look at all batches of the journal.
    let batches = format!("CROSS JOIN batch_rows b ON b.id IN ({})", of_turn("part.session", "part.turn"));
    format!(
        "WITH RECURSIVE part(session, turn) AS (
             VALUES (?1, ?2)
             UNION SELECT p.session, p.turn FROM part {batches} CROSS JOIN batch_rows p ON p.id = b.parent / {PLACES}
             UNION SELECT n.session, n.turn FROM part {batches} CROSS JOIN batch_rows n
                 ON n.parent BETWEEN b.id * {PLACES} AND (b.id + 1) * {PLACES} - 1)
         SELECT EXISTS (SELECT 1 FROM part {batches} WHERE b.calls IS NULL
             OR EXISTS (SELECT 1 FROM call_rows c WHERE c.batch = b.id AND c.ended_ms IS NULL)
             OR (b.parent IS NULL
                 AND EXISTS (SELECT 1 FROM session_rows s JOIN epoch_rows e ON e.id = s.epoch
                     WHERE s.id = b.session AND e.ended_ms IS NULL AND e.id = (SELECT max(id) FROM epoch_rows))
                 AND NOT EXISTS (SELECT 1 FROM ({}) later JOIN batch_rows l ON l.id = later.batch
                     WHERE l.agent = b.agent AND l.parent IS NULL)))",
        after_turn("b.session", "b.turn")
    )
}

/// Removes those of these turns that still may go. How many batches they had.
pub(super) fn remove(db: &mut Connection, turns: &BTreeSet<TurnId>) -> rusqlite::Result<u64> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    list(&tx)?;
    let mut removed = 0;
    // All are asked for before one goes: with it goes what joins it to the others.
    for turn in removable(&tx, turns.iter().copied())? {
        removed += remove_turn(&tx, turn)?;
    }
    tx.commit()?;
    Ok(removed)
}

fn remove_turn(tx: &Transaction<'_>, (session, turn): TurnId) -> rusqlite::Result<u64> {
    let batches = of_turn("?1", "?2");
    for table in ["attempt_rows", "question_rows", "answer_rows", "verdict_rows"] {
        let sql = format!(
            "DELETE FROM {table} WHERE call IN (SELECT id FROM call_rows WHERE batch IN ({batches}))"
        );
        tx.prepare_cached(&sql)?.execute(params![session, turn])?;
    }
    let calls = format!("DELETE FROM call_rows WHERE batch IN ({batches})");
    tx.prepare_cached(&calls)?.execute(params![session, turn])?;
    tx.prepare_cached("DELETE FROM cancel_rows WHERE session = ?1 AND turn = ?2")?
        .execute(params![session, turn])?;
    tx.prepare_cached(&format!(
        "UPDATE session_rows SET removed_turn = max(removed_turn, ?2), removed_batch = max(removed_batch,
             (SELECT coalesce(max(number), 0) FROM batch_rows WHERE id IN ({batches})))
         WHERE id = (SELECT max(n.id) FROM session_rows s JOIN session_rows n ON n.name = s.name WHERE s.id = ?1)"
    ))?
    .execute(params![session, turn])?;
    let gone = format!("DELETE FROM batch_rows WHERE id IN ({batches})");
    Ok(tx.prepare_cached(&gone)?.execute(params![session, turn])? as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    /// A journal of one session whose turns 1 to 3 have ended; a call of turn 1 has dispatched turn 2 of another agent.
    fn three_turns() -> Connection {
        let mut db = Connection::open_in_memory().expect("it takes no file");
        schema::create(&mut db).expect("it is new");
        let rows = format!(
            "INSERT INTO epoch_rows (id, pid, durability, started_ms, ended_ms) VALUES (1, 1, 'full', 0, 1);
             INSERT INTO session_rows VALUES (1, 1, 'demo', 1, '{{}}', 0, 0, 0, 0);
             INSERT INTO batch_rows VALUES (1, 1, 'root', 1, 1, NULL, NULL, 0, 0, 0, 0),
                 (2, 1, 'root/a', 2, 2, NULL, {PLACES}, 0, 0, 0, 0), (3, 1, 'root', 3, 3, NULL, NULL, 0, 0, 0, 0)"
        );
        db.execute_batch(&rows).expect("the tables are there");
        db
    }

    fn open(db: &Connection, batch: i64, agent: &str, turn: i64) {
        let open = "INSERT INTO batch_rows VALUES (?1, 1, ?2, ?3, ?1, NULL, NULL, 0, 0, NULL, 0)";
        db.execute(open, params![batch, agent, turn]).expect("the tables are there");
    }

    /// JR-13: a turn of which something is opened between its choice and its removal stays, with what belongs to it.
    #[test]
    fn what_is_opened_meanwhile_stays() {
        let mut db = three_turns();
        let mut scan = Scan::begin(&db).expect("the tables are there");
        let turns = scan.next(&mut db, 1).expect("the tables are there");
        assert_eq!(turns, Some(BTreeSet::from([(1, 1), (1, 2), (1, 3)])));
        open(&db, 4, "root/a", 2);
        assert_eq!(remove(&mut db, &turns.expect("there are some")).expect("the tables are there"), 1);
        let mut again = Scan::begin(&db).expect("the tables are there");
        assert_eq!(again.next(&mut db, 1).expect("the tables are there"), Some(BTreeSet::new()));
    }

    /// JR-13: it goes once through the turns that were there when it began.
    #[test]
    fn a_scan_ends_with_what_was_there() {
        let mut db = three_turns();
        let mut scan = Scan::begin(&db).expect("the tables are there");
        open(&db, 4, "root", 4);
        db.execute("UPDATE batch_rows SET calls = 0", []).expect("the tables are there");
        let turns = scan.next(&mut db, 1).expect("the tables are there").expect("there are some");
        assert_eq!(turns.len(), 3);
        assert_eq!(scan.next(&mut db, 1).expect("the tables are there"), None);
    }

    /// JR-13: the newest turn of an agent stays while its epoch goes on, with what its calls have dispatched.
    #[test]
    fn the_newest_turn_of_a_live_agent_stays() {
        let mut db = three_turns();
        let mut chosen = |change: &str| {
            db.execute_batch(change).expect("the tables are there");
            let mut scan = Scan::begin(&db).expect("the tables are there");
            scan.next(&mut db, 1).expect("the tables are there").expect("there are some")
        };
        let goes_on = "UPDATE epoch_rows SET ended_ms = NULL";
        assert_eq!(chosen(goes_on), BTreeSet::from([(1, 1), (1, 2)]));
        // Another agent has begun no turn of its own since.
        assert_eq!(chosen("UPDATE batch_rows SET parent = NULL WHERE id = 2"), BTreeSet::from([(1, 1)]));
        let of_the_newest = format!("UPDATE batch_rows SET parent = 3 * {PLACES} WHERE id = 2");
        assert_eq!(chosen(&of_the_newest), BTreeSet::from([(1, 1)]));
        let another = "INSERT INTO epoch_rows (id, pid, durability, started_ms) VALUES (2, 1, 'full', 2)";
        assert_eq!(chosen(another), BTreeSet::from([(1, 1), (1, 2), (1, 3)]));
    }

    /// JR-13: what it takes to look at a turn depends on what belongs to it, not on what else there is, nor on the square of it.
    #[test]
    fn a_turn_costs_what_it_has() {
        let steps = |others: i64, of_turn: i64| {
            let db = three_turns();
            for number in 0..others {
                let sql = "INSERT INTO batch_rows VALUES (NULL, 1, 'root', ?1, ?1, NULL, NULL, 0, 0, 0, 0)";
                db.execute(sql, [10 + number]).expect("the tables are there");
            }
            for number in 0..of_turn {
                let sql = "INSERT INTO batch_rows VALUES (NULL, 1, 'root/a', 2, ?1, NULL, NULL, 0, 0, 0, 0)";
                db.execute(sql, [10_000 + number]).expect("the tables are there");
            }
            list(&db).expect("the tables are there");
            let mut query = db.prepare(&kept()).expect("it is SQL");
            query.query_row([1, 1], |_| Ok(())).expect("the tables are there");
            query.get_status(rusqlite::StatementStatus::VmStep)
        };
        assert_eq!(steps(0, 0), steps(1000, 0));
        let more = steps(0, 200) - steps(0, 100);
        assert!(steps(0, 400) - steps(0, 200) <= 2 * more + more / 10, "it grows with the square");
    }
}
