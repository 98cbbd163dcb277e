//! How a bench goes, while it runs.
//!
//! Owns: the phases, and the line of each second. Never: writes it anywhere.

use std::fmt;
use std::time::Duration;

/// What is done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Locks are taken that the workload needs.
    Preparing,
    /// Operations run, and aren't counted yet.
    WarmingUp,
    /// Operations are counted.
    Measuring,
    /// No more operations start; answers that are under way are waited for.
    Ending,
    /// Locks are given back.
    GivingBack,
}

/// How a bench goes, once a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What is done now.
    pub phase: Phase,
    /// How long that has been done.
    pub elapsed: Duration,
    /// Operations a second, since the last time.
    pub per_second: f64,
    /// Errors since the last time.
    pub errors: u64,
    /// Half of the operations since the last time were at most this slow; nothing when there were none.
    pub p50: Duration,
    /// 99 % of them were.
    pub p99: Duration,
    /// Operations so far that began late; of an open loop only.
    pub late: Option<u64>,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64();
        let phase = match self.phase {
            Phase::Preparing => return write!(f, "preparing   {seconds:>4.0} s"),
            Phase::GivingBack => return write!(f, "giving back {seconds:>4.0} s"),
            Phase::WarmingUp => "warming up ",
            Phase::Measuring => "measuring  ",
            Phase::Ending => "ending     ",
        };
        let ms = |duration: Duration| duration.as_secs_f64() * 1_000.0;
        write!(f, "{phase} {seconds:>4.0} s  {:>8.0}/s", self.per_second)?;
        if self.per_second > 0.0 {
            write!(f, "  p50 {:.3} ms  p99 {:.3} ms", ms(self.p50), ms(self.p99))?;
        }
        write!(f, "  errors {}", self.errors)?;
        self.late.map_or(Ok(()), |late| write!(f, "  late {late}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_fast_it_goes_and_what_is_late() {
        let progress = Progress {
            phase: Phase::Measuring,
            elapsed: Duration::from_secs(3),
            per_second: 5_998.0,
            errors: 2,
            p50: Duration::from_micros(412),
            p99: Duration::from_micros(3_070),
            late: Some(7),
        };
        assert_eq!(
            progress.to_string(),
            "measuring      3 s      5998/s  p50 0.412 ms  p99 3.070 ms  errors 2  late 7"
        );
        let dead = Progress { per_second: 0.0, late: None, ..progress };
        assert_eq!(dead.to_string(), "measuring      3 s         0/s  errors 2");
        let closed = Progress { phase: Phase::GivingBack, late: None, ..progress };
        assert_eq!(closed.to_string(), "giving back    3 s");
    }
}
