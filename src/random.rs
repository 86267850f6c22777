//! Numbers for lots and jitter, which need not be secret.

/// Distance of two starts of [`mix`] that give unrelated numbers.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number from the operating system.
pub(crate) fn number() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness a draw is only predictable.
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// One step of splitmix64.
pub(crate) fn mix(start: u64) -> u64 {
    let mut mixed = start.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
