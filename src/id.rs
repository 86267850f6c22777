//! Names and numbers that identify things: endpoints, pools, leases.

use std::fmt;
use std::str::FromStr;

use compact_str::CompactString;

/// Longest endpoint id or pool name, in bytes.
pub const MAX_NAME_LENGTH: usize = 64;

/// Why a name was refused. It never repeats the name: a misplaced line may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidName {
    /// The name has no characters.
    Empty,
    /// The name is longer than [`MAX_NAME_LENGTH`] bytes.
    TooLong,
    /// A character other than `A-Z a-z 0-9 _ -`, at this byte.
    BadCharacter(usize),
    /// The same in an [`AdminName`], which may have `. @ +` as well.
    BadAdminCharacter(usize),
}

impl fmt::Display for InvalidName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a name must not be empty"),
            Self::TooLong => write!(f, "a name has at most {MAX_NAME_LENGTH} bytes"),
            Self::BadCharacter(at) => {
                write!(f, "a name has only A-Z, a-z, 0-9, _ and -; byte {at} is none of them")
            }
            Self::BadAdminCharacter(at) => write!(
                f,
                "an administrator's name has only A-Z, a-z, 0-9, _, -, ., @ and +; byte {at} is \
                 none of them"
            ),
        }
    }
}

impl std::error::Error for InvalidName {}

fn check(name: &str) -> Result<CompactString, InvalidName> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    check_bytes(name, plain, InvalidName::BadCharacter)
}

fn check_admin(name: &str) -> Result<CompactString, InvalidName> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.@+".contains(&b);
    check_bytes(name, plain, InvalidName::BadAdminCharacter)
}

fn check_bytes(
    name: &str,
    plain: fn(u8) -> bool,
    refused: fn(usize) -> InvalidName,
) -> Result<CompactString, InvalidName> {
    if name.is_empty() {
        return Err(InvalidName::Empty);
    }
    if name.len() > MAX_NAME_LENGTH {
        return Err(InvalidName::TooLong);
    }
    match name.bytes().position(|b| !plain(b)) {
        Some(at) => Err(refused(at)),
        None => Ok(CompactString::from(name)),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $check:ident, $characters:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(CompactString);

        impl $type {
            #[doc = concat!("Checks a name: 1 to 64 characters of `A-Z a-z 0-9 ", $characters, "`.")]
            ///
            /// # Errors
            /// [`InvalidName`] says what is wrong and at which byte.
            pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidName> {
                $check(name.as_ref()).map(Self)
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(name: &str) -> Result<Self, InvalidName> {
                Self::new(name)
            }
        }

        impl TryFrom<&str> for $type {
            type Error = InvalidName;

            fn try_from(name: &str) -> Result<Self, InvalidName> {
                Self::new(name)
            }
        }
    };
}

name! {
    /// The public name of one leasable proxy endpoint.
    ///
    /// It is not the endpoint's address: URL and password stay in the inventory and never
    /// enter the pool.
    ///
    /// ```
    /// use reqwest_lease::EndpointId;
    ///
    /// assert_eq!(EndpointId::new("vn-a01").unwrap().as_str(), "vn-a01");
    /// assert!(EndpointId::new("http://user:pass@host").is_err());
    /// ```
    EndpointId, check, "_ -"
}

impl EndpointId {
    /// The last id before this one in order of ids, `None` for the first: what a store lists after
    /// it begins with this one, if that is a member.
    pub(crate) fn before(&self) -> Option<Self> {
        let (last, rest) = self.0.as_bytes().split_last()?;
        let rest = std::str::from_utf8(rest).ok()?;
        let lower = IN_ORDER.bytes().take_while(|other| other < last).last();
        match lower {
            Some(lower) => {
                let mut name = CompactString::from(rest);
                name.push(char::from(lower));
                name.extend(std::iter::repeat_n('z', MAX_NAME_LENGTH - name.len()));
                Some(Self(name))
            }
            // One that ends in the lowest character follows the same without it.
            None => (!rest.is_empty()).then(|| Self(CompactString::from(rest))),
        }
    }
}

/// The characters of names, lowest first.
const IN_ORDER: &str = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

name! {
    /// The name of a pool: a set of endpoints whose leases are counted together.
    ///
    /// ```
    /// use reqwest_lease::PoolName;
    ///
    /// assert_eq!(PoolName::new("vn").unwrap().to_string(), "vn");
    /// ```
    PoolName, check, "_ -"
}

name! {
    /// Who gives an order, as the trail of orders shows it: a person, a host, a job.
    ///
    /// ```
    /// use reqwest_lease::AdminName;
    ///
    /// assert_eq!(AdminName::new("kim@example.net").unwrap().as_str(), "kim@example.net");
    /// assert!(AdminName::new("redis://kim:word@host").is_err());
    /// ```
    AdminName, check_admin, "_ - . @ +"
}

/// A number that grows with every grant in a pool.
///
/// It orders grants in an audit, and a gateway of your own may refuse requests with an older
/// one. An ordinary proxy does not look at it.
///
/// After a restart or a failover of the store that may have lost grants, the failover hold leaves
/// about a million numbers out, so that none of theirs is given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_to_sixty_four_plain_characters() {
        assert_eq!(EndpointId::new(""), Err(InvalidName::Empty));
        assert_eq!(EndpointId::new("a".repeat(65)), Err(InvalidName::TooLong));
        assert!(EndpointId::new("a".repeat(64)).is_ok());
        for bad in ["a b", "a:b", "{a}", "a\n", "é", "a/b"] {
            assert!(matches!(PoolName::new(bad), Err(InvalidName::BadCharacter(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_refused_name_is_not_repeated() {
        let error = EndpointId::new("host:8080:user:canary").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("canary"));
    }

    #[test]
    fn nothing_is_between_an_id_and_the_one_before() {
        let id = |name: &str| EndpointId::new(name).unwrap();
        let before = |name: &str| id(name).before().map(|before| before.to_string());
        assert_eq!(before("-"), None);
        assert_eq!(before("a-"), Some("a".to_owned()));
        assert_eq!(before("b1"), Some(format!("b0{}", "z".repeat(62))));
        assert_eq!(before("a"), Some(format!("_{}", "z".repeat(63))));
        assert_eq!(before("0"), Some(format!("-{}", "z".repeat(63))));
        let long = format!("{}1", "z".repeat(63));
        assert_eq!(before(&long), Some(format!("{}0", "z".repeat(63))));
        let mut in_order = IN_ORDER.as_bytes().to_vec();
        in_order.sort_unstable();
        assert_eq!(in_order, IN_ORDER.as_bytes());
        let mut names = vec![String::new()];
        for length in 0..3 {
            let longer =
                |name: &String| ["-", "0", "Z", "_", "y", "z"].map(|end| format!("{name}{end}"));
            let shorter = names.iter().filter(|name| name.len() == length);
            names.extend(shorter.flat_map(longer).collect::<Vec<_>>());
        }
        let ids: Vec<_> = names[1..].iter().map(|name| id(name)).collect();
        for one in &ids {
            let before = one.before();
            assert!(before.as_ref().is_none_or(|before| before < one));
            let between = |other: &&EndpointId| {
                before.as_ref().is_none_or(|before| before < *other) && *other < one
            };
            assert_eq!(ids.iter().find(between), None, "{one}");
        }
    }
}
