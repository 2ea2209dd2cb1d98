/**
 * Runs after the page's core script. Makes one episode, which begins by itself with the task's seed. No clock shows or ends it. The page
 * reports the end before it shows any of it.
 */
(function () {
  var seed = SEED;
  var word = WORD;
  // Longest time for a timer of the page's core; rollouts end earlier.
  var day = 24 * 60 * 60 * 1000;
  var begin = core.startEpisode;
  var end = core.endEpisode;
  var Request = window.XMLHttpRequest;
  var toJson = JSON.stringify;
  var hasBegun = false;

  // Some pages make random choices while they load.
  Math.seedrandom(seed);
  core.countdownTimer = function () {};

  core.startEpisode = function () {
    begin.call(core);
    // These elements show the reward, and mark each click.
    for (var name of ["reward-display", "click-canvas"]) document.getElementById(name).style.display = "none";
    if (hasBegun) {
      core.cover_div.onclick = null;
      core.cover_div.innerHTML = "Done";
      return;
    }
    hasBegun = true;
    core.EPISODE_MAX_TIME = day;
    Math.seedrandom(seed);
    core.startEpisodeReal();
  };

  core.endEpisode = function (raw) {
    // The core has already ended this episode.
    if (core.EP_TIMER === null) return;
    if (word !== null) tell(raw);
    end.apply(core, arguments);
  };

  /** Waits for the answer, so that no picture shows an end that the service does not know yet. */
  function tell(raw) {
    var request = new Request();
    request.open("POST", "/ended", false);
    request.setRequestHeader("x-word", word);
    request.setRequestHeader("content-type", "application/json");
    request.send(toJson({ raw: raw }));
  }
})();
