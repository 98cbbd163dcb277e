//! Who held a resource at a time.
//!
//! Owns: what the records say about it, and when they can't say. Never: a guess.

use super::files::Place;
use super::project::quoted;
use super::read::Forward;
use super::search::contains;
use super::tail::ms_of;
use kunci_api::AuditRecord;
use std::io;

/// What an audit log says about a resource at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldAt {
    /// The grant of the lease that was current then.
    pub grant: Option<AuditRecord>,
    /// The end of that lease; and when nobody held the resource, of the one before.
    pub end: Option<AuditRecord>,
    /// Why the answer may be wrong: something that isn't recorded may have changed it.
    pub doubts: Vec<Doubt>,
    /// The wall time of the newest record.
    pub newest: Option<String>,
}

/// Why an answer may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// There is no record from before that time.
    BeginsLater,
    /// The older files are gone, and the resource isn't in those that are left.
    OlderAreGone,
    /// This gap may hide a grant or an end.
    Gap(Box<AuditRecord>),
}

struct Lease {
    grant: AuditRecord,
    end: Option<AuditRecord>,
}

struct Gap {
    record: AuditRecord,
    /// How many records of the resource stand before it.
    behind: usize,
    from_ms: u64,
}

impl HeldAt {
    /// Reads the files, oldest first, for who held `resource` at `at_ms`, in ms since 1970.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn find(places: &[Place], resource: &str, at_ms: u64) -> io::Result<Self> {
        let sought = quoted(resource);
        let (mut leases, mut gaps): (Vec<Lease>, Vec<Gap>) = (Vec::new(), Vec::new());
        let (mut first, mut newest): (Option<String>, Option<String>) = (None, None);
        let mut known_before = None;
        let mut count = 0;
        for line in Forward::open(places) {
            let line = line?;
            let is_gap = line.starts_with(b"{\"kind\":\"gap\"");
            if is_gap || contains(&line, &sought) {
                let Ok(record) = serde_json::from_slice::<AuditRecord>(&line) else { continue };
                if is_gap {
                    let from_ms = newest.as_deref().and_then(ms_of).unwrap_or(0);
                    gaps.push(Gap { record, behind: count, from_ms });
                } else if record.resource.as_deref() == Some(resource) && take(&mut leases, &record) {
                    count += 1;
                    if is_by(&record, at_ms) {
                        known_before = Some(count);
                    }
                }
            }
            if let Some(wall_time) = wall_time_of(&line) {
                first.get_or_insert_with(|| wall_time.to_owned());
                newest = Some(wall_time.to_owned());
            }
        }
        let mut doubts = Vec::new();
        if first.as_deref().and_then(ms_of).is_none_or(|first| first > at_ms) {
            doubts.push(Doubt::BeginsLater);
        } else if known_before.is_none()
            && places.first().is_some_and(|place| !matches!(place.number, 1 | u64::MAX))
        {
            doubts.push(Doubt::OlderAreGone);
        }
        let hides = |gap: &Gap| gap.behind >= known_before.unwrap_or(0) && gap.from_ms <= at_ms;
        doubts.extend(gaps.into_iter().filter(hides).map(|gap| Doubt::Gap(Box::new(gap.record))));
        let last = leases.into_iter().rfind(|lease| is_by(&lease.grant, at_ms));
        let (grant, end) = match last {
            Some(Lease { grant, end }) if end.as_ref().is_none_or(|end| !is_by(end, at_ms)) => {
                (Some(grant), end)
            }
            Some(Lease { end, .. }) => (None, end),
            None => (None, None),
        };
        Ok(Self { grant, end, doubts, newest })
    }
}

/// Takes up a record that begins or ends a lease; says whether it does.
fn take(leases: &mut Vec<Lease>, record: &AuditRecord) -> bool {
    match record.kind.as_str() {
        "granted" => leases.push(Lease { grant: record.clone(), end: None }),
        "released" | "expired" | "forced" | "abandoned" => {
            let of = |lease: &&mut Lease| lease.grant.fencing_token == record.fencing_token;
            match leases.iter_mut().rev().find(of) {
                Some(lease) => lease.end = Some(record.clone()),
                // Its grant is in a file that is gone.
                None => leases.push(Lease {
                    grant: AuditRecord { wall_time: "1970-01-01T00:00:00Z".to_owned(), ..record.clone() },
                    end: Some(record.clone()),
                }),
            }
        }
        _ => return false,
    }
    true
}

fn is_by(record: &AuditRecord, at_ms: u64) -> bool {
    ms_of(&record.wall_time).is_some_and(|ms| ms <= at_ms)
}

/// The wall time of a line, which stands behind its kind.
fn wall_time_of(line: &[u8]) -> Option<&str> {
    const NAME: &[u8] = b"\"wallTime\":\"";
    let head = line.get(..line.len().min(96))?;
    let begins = head.windows(NAME.len()).position(|part| part == NAME)? + NAME.len();
    let rest = head.get(begins..)?;
    let ends = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(rest.get(..ends)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(lines: &str, at: &str) -> HeldAt {
        let folder = tempfile::tempdir().unwrap();
        let lines: String = lines
            .lines()
            .map(|line| {
                let [kind, minute, rest] = line.trim().splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
                format!("{{\"kind\":\"{kind}\",\"wallTime\":\"2026-11-30T03:{minute}:00.000Z\"{rest}}}\n")
            })
            .collect();
        std::fs::write(folder.path().join(super::super::CURRENT), lines).unwrap();
        let places = super::super::files_of(folder.path()).unwrap();
        HeldAt::find(&places, "r", super::super::time_ms(&format!("2026-11-30T03:{at}")).unwrap()).unwrap()
    }

    const STORY: &str = r#"log 00 ,"nodeId":1
        granted 05 ,"resource":"r","owner":"a","fencingToken":7
        granted 06 ,"resource":"other","owner":"x","fencingToken":8
        released 10 ,"resource":"r","owner":"a","fencingToken":7
        granted 10 ,"resource":"r","owner":"b","fencingToken":10
        expired 20 ,"resource":"r","owner":"b","fencingToken":10"#;

    #[test]
    fn who_held_it_is_whose_lease_had_begun_and_not_ended() {
        let owner = |at| held(STORY, at).grant.and_then(|grant| grant.owner);
        assert_eq!(owner("04"), None);
        assert_eq!(owner("05").as_deref(), Some("a"));
        assert_eq!(owner("09:59").as_deref(), Some("a"));
        assert_eq!(owner("10").as_deref(), Some("b"));
        assert_eq!(owner("20"), None);
        let free = held(STORY, "30");
        assert_eq!((free.end.unwrap().kind.as_str(), free.doubts), ("expired", Vec::new()));
    }

    #[test]
    fn what_is_not_recorded_makes_the_answer_doubtful() {
        let gap = |at: &str| held(&format!("{STORY}\ngap 40 ,\"fromIndex\":9,\"toIndex\":12"), at).doubts;
        assert_eq!(gap("10"), []);
        assert_eq!(gap("19"), []);
        assert!(matches!(gap("25")[..], [Doubt::Gap(_)]));
        assert!(held(STORY, "00").doubts.is_empty());
        assert_eq!(held("log 10 ,\"nodeId\":1", "05").doubts, [Doubt::BeginsLater]);
    }
}
