# Plots of docs/method.md; tools/method-plots makes the tables in `work` and calls this.
set terminal svg size 900,340 font 'sans-serif,13' background '#ffffff'
set grid lc rgb '#dddddd'
set key top right opaque
set border lc rgb '#888888'

set output out.'/fives.svg'
set multiplot layout 1,2
set yrange [-14:22]
set ylabel 'again over shipped, %'
do for [s in "off on"] {
	set title 'scrub '.s
	set xlabel 'round'
	plot work.'/rounds-'.s with points pt 7 ps 0.25 lc rgb '#bbbbbb' title 'one round', \
	     work.'/fives-'.s with lines lw 1.2 lc rgb '#1f77b4' title 'mean of five', \
	     2 with lines lw 1.5 dt 2 lc rgb '#d62728' title 'margin 2 %', 0 with lines lc rgb '#000000' notitle
}
unset multiplot

set output out.'/spread.svg'
set title 'the same kernel against itself, one round: how often it comes out below x'
set xlabel 'again over shipped, %'
set ylabel 'share of rounds'
set xrange [-15:25]
set yrange [0:1]
set key bottom right
plot work.'/sorted-on' with steps lw 2 lc rgb '#1f77b4' title 'scrub on', \
     work.'/sorted-off' with steps lw 2 lc rgb '#ff7f0e' title 'scrub off', \
     '+' using (2):($0/99.0) with lines dt 2 lc rgb '#d62728' title 'margin 2 %'

set output out.'/looks.svg'
set title 'what the judge saw, look by look (scrub on, rounds 161 to 224)'
set xlabel 'rounds'
set ylabel 'ratio - 1, %'
set xrange [6:34]
set yrange [-8:16]
set key top right
plot work.'/looks-0' using ($1-0.1):2:3:4 with yerrorbars pt 7 lw 2 lc rgb '#1f77b4' title 'shipped against itself', \
     work.'/looks-5' using ($1+0.1):2:3:4 with yerrorbars pt 5 lw 2 lc rgb '#ff7f0e' title 'the same, slowed by 5 %', \
     2 with lines dt 2 lw 1.5 lc rgb '#d62728' title 'margin 2 %'
