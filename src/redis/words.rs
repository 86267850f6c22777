//! The words that scripts and this crate have in common.

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident = $word:literal;)*) => {
        $($(#[$meta])* pub(crate) const $name: &str = $word;)*

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
        PARKED = "parked";
        MEMBERS = "members";
        CHECKED = "checked";
        CHANGED = "changed";
        MENDED = "mended";
        SERVER = "server";
        RIGHTS = "rights";
        REMAINS = "remains";
        SETTINGS = "settings";
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

/// Codes of errors that scripts raise, before they write anything; the last two are Redis' own.
pub(crate) mod code {
    words! {
        /// Arguments that this crate does not send.
        #[allow(dead_code, reason = "people are told of it by its code")]
        BADCALL = "BADCALL";
        /// The standing orders are not where the pool is: on a node to which a part of it has
        /// moved, or lost.
        NOORDERS = "NOORDERS";
        /// A command that the user lacks.
        NOPERM = "NOPERM";
        /// A key of the pool holds another type.
        WRONGTYPE = "WRONGTYPE";
    }
}

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
