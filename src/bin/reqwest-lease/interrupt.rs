//! Being told to end.

use std::io;

/// Waits until somebody wants the program to end: by the keyboard, by another program, or because
/// the terminal is gone. From the first call on these signals no longer end it by themselves.
#[cfg(unix)]
pub(crate) async fn wanted() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut keyboard = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut end = signal(SignalKind::terminate())?;
    let mut gone = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = keyboard.recv() => {}
        _ = quit.recv() => {}
        _ = end.recv() => {}
        _ = gone.recv() => {}
    }
    Ok(())
}

/// Waits until somebody wants the program to end, by the keyboard.
#[cfg(not(unix))]
pub(crate) async fn wanted() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
