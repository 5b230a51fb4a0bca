//! The processor time of requests, each beside how far apart the cores were.

/// How far apart cores are that do not share a cache, at least, as a multiple of those that do.
const FAR: f64 = 2.0;

/// What was measured of a server, round by round.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Time>);

#[derive(Debug, Clone, Copy)]
struct Time {
    /// Of a request, in microseconds.
    us: f64,
    /// Of a line of memory to the other core and back, in nanoseconds: the longer of before and after. Zero with one
    /// core.
    line_ns: f64,
}

/// Rounds in which the cores were about as far apart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rounds {
    /// No farther than twice this, the least that was seen.
    Near(f64),
    /// Farther than that.
    Far(f64),
}

impl Rounds {
    fn have(self, time: &Time) -> bool {
        match self {
            Self::Near(least_ns) => time.line_ns <= FAR * least_ns,
            Self::Far(least_ns) => time.line_ns > FAR * least_ns,
        }
    }
}

impl Times {
    pub(crate) fn push(&mut self, us: f64, line_ns: f64) {
        self.0.push(Time { us, line_ns });
    }

    /// The median of all rounds.
    pub(crate) fn typical(&self) -> f64 {
        median(self.0.iter().map(|time| time.us)).unwrap_or_default()
    }

    /// The median of these rounds, if there are any.
    pub(crate) fn typical_of(&self, rounds: Rounds) -> Option<f64> {
        median(self.0.iter().filter(|time| rounds.have(time)).map(|time| time.us))
    }

    /// How far apart the cores were in these rounds, in nanoseconds.
    pub(crate) fn lines(&self, rounds: Rounds) -> impl Iterator<Item = f64> {
        self.0.iter().filter(move |time| rounds.have(time)).map(|time| time.line_ns)
    }

    /// The least distance of all rounds, in nanoseconds.
    pub(crate) fn least_line_ns(&self) -> f64 {
        self.0.iter().map(|time| time.line_ns).fold(f64::MAX, f64::min)
    }
}

fn median(all: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = all.collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}
