// Numbers in words.

export function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share > 0 && share < 0.005) return "<1%";
  if (share < 1 && share > 0.995) return ">99%";
  return `${Math.round(100 * share)}%`;
}

export function counted(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

export function figure(number, digits = 1) {
  return number === null || number === undefined ? "–" : Number(number.toFixed(digits)).toLocaleString("en");
}

export function hours(number) {
  if (number === null) return "–";
  if (number < 1) return `${Math.max(1, Math.round(60 * number))} min`;
  return `${figure(number)} h`;
}

export function saved(questions, labels) {
  return `${counted(questions, "question")} instead of ${labels}`;
}
