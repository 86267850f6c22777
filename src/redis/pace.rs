//! How long to wait before the next try.

use std::time::Duration;

/// The pause after this many failures: doubling from `first` up to `longest`, of which at least
/// half is kept and the rest is drawn.
pub(crate) fn pause(first: Duration, longest: Duration, failures: u32) -> Duration {
    let step = first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(longest);
    step.mul_f64(0.5 + draw() / 2.0)
}

/// A number from 0 to 1. Without randomness in the system it is 1: the pause is then the longest.
fn draw() -> f64 {
    let mut bytes = [255; 2];
    let _ = getrandom::fill(&mut bytes);
    f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_with_jitter_and_has_an_end() {
        let (first, longest) = (Duration::from_millis(50), Duration::from_secs(1));
        for (failures, full) in [(0, 50), (1, 50), (2, 100), (4, 400), (6, 1000), (99, 1000)] {
            let drawn: Vec<_> = (0..50).map(|_| pause(first, longest, failures)).collect();
            let full = Duration::from_millis(full);
            assert!(drawn.iter().all(|pause| (full / 2..=full).contains(pause)), "{drawn:?}");
            assert!(drawn.iter().any(|pause| *pause != drawn[0]));
        }
    }
}
