// Keeps a page of epd up to date: asks for the same page again every few seconds
// and puts its marked regions in place of those that are shown. Without this
// script everything else works.
(function () {
  "use strict";
  var line = document.getElementById("live");
  if (!line || !window.fetch || !window.DOMParser) return;
  var said = document.getElementById("live-said");
  var trouble = document.getElementById("live-trouble");
  var every = (Number(line.dataset.every) || 5) * 1000;
  var failures = 0;
  var last = Date.now();
  var timer = 0;
  var busy = false;

  function clock(t) {
    return new Date(t).toLocaleTimeString();
  }

  function say(text) {
    if (said && said.textContent !== text) said.textContent = text;
  }

  // place is what finds an element again in the new text of its region.
  function place(region, element) {
    if (element.id) return { id: element.id };
    var like = region.querySelectorAll(element.tagName);
    var key = element.getAttribute("href") || element.getAttribute("aria-label") || element.textContent;
    return { tag: element.tagName, key: key, at: Array.prototype.indexOf.call(like, element) };
  }

  function found(region, p) {
    if (p.id) return document.getElementById(p.id);
    var like = region.querySelectorAll(p.tag);
    for (var i = 0; i < like.length; i++) {
      var e = like[i];
      if ((e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent) === p.key) return e;
    }
    return like[p.at] || null;
  }

  // kept is what a reader did to a region: opened, scrolled, focused.
  function kept(region) {
    var focus = region.contains(document.activeElement) && document.activeElement !== region ? document.activeElement : null;
    return {
      focus: focus ? place(region, focus) : null,
      open: Array.prototype.map.call(region.querySelectorAll("details"), function (d) { return d.open; }),
      scroll: Array.prototype.map.call(region.querySelectorAll(".scroll"), function (s) { return s.scrollLeft; })
    };
  }

  function restore(region, k) {
    region.querySelectorAll("details").forEach(function (d, i) { if (i < k.open.length) d.open = k.open[i]; });
    region.querySelectorAll(".scroll").forEach(function (s, i) { if (k.scroll[i]) s.scrollLeft = k.scroll[i]; });
    if (k.focus) {
      var e = found(region, k.focus);
      if (e) e.focus({ preventScroll: true });
    }
  }

  function busyIn(region) {
    var a = document.activeElement;
    if (a && region.contains(a) && /^(INPUT|SELECT|TEXTAREA)$/.test(a.tagName)) return true;
    var s = window.getSelection && window.getSelection();
    return !!(s && !s.isCollapsed && s.anchorNode && region.contains(s.anchorNode));
  }

  function show(text) {
    var page = new DOMParser().parseFromString(text, "text/html");
    var news = [];
    document.querySelectorAll("[data-live]").forEach(function (region) {
      var fresh = region.id && page.getElementById(region.id);
      if (!fresh || !fresh.hasAttribute("data-live")) return;
      var state = fresh.getAttribute("data-state");
      if (state && state !== region.getAttribute("data-state")) {
        region.setAttribute("data-state", state);
        news.push(state);
      }
      var was = region._text === undefined ? region.innerHTML : region._text;
      if (fresh.innerHTML === was || busyIn(region)) return;
      var k = kept(region);
      region._text = fresh.innerHTML;
      region.replaceChildren.apply(region, Array.prototype.map.call(fresh.childNodes, function (n) { return document.importNode(n, true); }));
      restore(region, k);
    });
    if (news.length) say(news.join(". "));
  }

  function failed(why) {
    failures++;
    if (trouble) {
      trouble.textContent = "Not updated since " + clock(last) + ": " + why;
      trouble.hidden = false;
    }
    if (failures === 2) say("Not updated any more: " + why);
  }

  function again() {
    window.clearTimeout(timer);
    if (!document.hidden) timer = window.setTimeout(update, every * Math.min(1 << failures, 12));
  }

  function update() {
    if (busy || document.hidden) return;
    busy = true;
    var stop = new AbortController();
    var late = window.setTimeout(function () { stop.abort(); }, 10000);
    fetch(window.location.href, { headers: { "X-Epd-Live": "1" }, credentials: "same-origin", cache: "no-store", signal: stop.signal, redirect: "error" })
      .then(function (r) {
        if (r.status === 403) throw new Error("you aren't logged in any more; load the page again");
        if (!r.ok) throw new Error("epd answers " + r.status);
        return r.text();
      })
      .then(function (text) {
        show(text);
        if (failures >= 2) say("Updated again");
        failures = 0;
        last = Date.now();
        if (trouble) trouble.hidden = true;
      })
      .catch(function (e) {
        failed(e instanceof TypeError || e.name === "AbortError" ? "epd doesn't answer" : e.message);
      })
      .then(function () {
        window.clearTimeout(late);
        busy = false;
        again();
      });
  }

  document.addEventListener("visibilitychange", function () {
    if (document.hidden) window.clearTimeout(timer);
    else update();
  });
  again();
})();
