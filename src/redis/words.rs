//! The words that scripts and this crate have in common.

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: &str = $word;)*

        #[cfg(test)]
        pub(crate) const ALL: &[&str] = &[$($word),*];
    };
}

/// First words of replies.
pub(crate) mod head {
    words! {
        GRANTED = "granted";
        EMPTY = "empty";
        PAUSED = "paused";
        HOLD = "hold";
        CANCELLED = "cancelled";
        /// The pool is of the other mode than the script is for.
        SHARED = "shared";
        EXCLUSIVE = "exclusive";
        /// The pool is not open yet.
        LOADING = "loading";
        RENEWED = "renewed";
        NOT_OWNER = "not_owner";
        ENDED = "ended";
        RELEASED = "released";
        TOMBSTONED = "tombstoned";
        REAPED = "reaped";
        STATUS = "status";
        MEMBERS = "members";
        CHECKED = "checked";
        CHANGED = "changed";
        MENDED = "mended";
        SERVER = "server";
        RIGHTS = "rights";
        REMAINS = "remains";
        /// An order names an endpoint that is no member.
        UNKNOWN = "unknown";
        EXISTS = "exists";
        /// A pool that is not set up has keys.
        LEFTOVERS = "leftovers";
        /// What is for loading pools came to one that is open.
        OPEN = "open";
        /// A pool to be erased is open and not paused.
        IN_USE = "in_use";
        ENTRIES = "entries";
        TTL_TOO_LARGE = "ttl_too_large";
        UNINITIALISED = "uninitialised";
        TOO_NEW = "too_new";
        RESERVED = "reserved";
        PROBING = "probing";
        FULL = "full";
        UNDONE = "undone";
        /// Too late to be undone.
        LAPSED = "lapsed";
        /// Of a pause before the last one.
        STALE = "stale";
        SETTLED = "settled";
        ENTERED = "entered";
        LEFT = "left";
    }
}

/// Codes of errors that scripts raise, before they write anything: arguments that this crate does
/// not send, orders that are not where the pool is, a command that the user lacks, and a key of the
/// pool that holds another type (the last two are Redis' own words).
#[cfg(test)]
pub(crate) const CODES: &[&str] = &["BADCALL", "NOORDERS", "NOPERM", "WRONGTYPE"];

/// Where a member is.
pub(crate) mod place {
    pub(crate) const READY: &str = "ready";
    pub(crate) const COOLING: &str = "cooling";
    pub(crate) const LEASED: &str = "leased";
    /// In no place, which only damage leaves.
    pub(crate) const LOST: &str = "lost";
    pub(crate) const DISABLED: &str = "disabled";
    pub(crate) const QUARANTINED: &str = "quarantined:";
}

/// Standing orders.
pub(crate) mod order {
    pub(crate) const DISABLE: &str = "disable";
    pub(crate) const DRAIN: &str = "drain";
    pub(crate) const REMOVE: &str = "remove";
    pub(crate) const QUARANTINE: &str = "quarantine:";
}
