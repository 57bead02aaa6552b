// Follows a stream of states, and says whether it is followed.
//
// connect(url, {onState, onStatus}) -> {close()}; onStatus gets one of "connecting", "live",
// "stale" (open, but nothing new for a while) and "lost" (the browser tries again by itself).
// A tab that nobody sees lets go after a minute and comes back with it.

const STALE_SECONDS = 10;
const HIDDEN_SECONDS = 60;

export function connect(url, {onState, onStatus}) {
  let source = null;
  let heard = 0;
  let hidden = null;

  const open = () => {
    source = new EventSource(url);
    onStatus("connecting");
    source.onmessage = (event) => {
      heard = Date.now();
      onStatus("live");
      onState(JSON.parse(event.data));
    };
    source.onerror = () => {
      onStatus("lost");
      // A refusal ends the stream for good; a server that is starting refuses for moments only.
      if (source.readyState === EventSource.CLOSED) setTimeout(reopen, 2000);
    };
  };
  const shut = () => {
    source?.close();
    source = null;
  };
  const reopen = () => {
    if (source?.readyState === EventSource.CLOSED) open();
  };
  const seen = () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(shut, 1000 * HIDDEN_SECONDS);
    else if (!source) open();
  };
  const watch = setInterval(() => {
    if (source?.readyState === EventSource.OPEN && Date.now() - heard > 1000 * STALE_SECONDS) {
      onStatus("stale");
    }
  }, 1000);
  document.addEventListener("visibilitychange", seen);
  open();
  return {
    close() {
      clearInterval(watch);
      clearTimeout(hidden);
      document.removeEventListener("visibilitychange", seen);
      shut();
    },
  };
}

const WORDS = {
  connecting: "connecting",
  live: "live",
  stale: "nothing new",
  lost: "not connected, trying again",
};

/** Show a status in an element with role=status; it speaks only when the status changes. */
export function showStatus(element, status) {
  if (element.dataset.status === status) return;
  element.dataset.status = status;
  element.textContent = WORDS[status];
}
