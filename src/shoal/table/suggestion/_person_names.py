"""Frequent given and family names of several languages, to recognise a column that names people.

A column is called one of names when a good share of its different values holds a known name, so a
short list of the most frequent ones is enough; it needs no completeness.
"""

from __future__ import annotations

_GIVEN = """
aaron abdul abigail adam adriana agnieszka ahmed ahmet aisha alan albert alberto alejandro
aleksandra alessandro alex alexander alexandra alexandre alexis ali alice alicia amanda amelia amir
amit amy ana anastasia andrea andreas andrei andrew andrzej angela anita anja ann anna anne annika
anthony antoine anton antonella antonia antonio aria arthur arun astrid ava barbara bart beatriz
benjamin bernard bernd bethany betty birgit bogdan boris brandon brenda brian bruno camille carla
carlos carmen carol caroline catherine celine charles charlotte chiara chloe chris christian
christina christine christopher claire clara claudia cristina cynthia daan dagmar daniel daniela
daniele david deborah deepak denis dennis diana diego dieter dirk dmitri dmitry dominique donald
donna dorothy duarte edith eduardo edward elena eleonora elias elif elisa elisabeth elizabeth ella
els emily emine emma enrique eric erik ernst esther ethan eva evelyn ewa fabian fatima fatma
federica felix fernanda fernando filipe finn fiona florian francesca francesco francisco frank
franz friedrich fritz gabriel gabriele gary georg george gerard gerhard gianni giorgio giovanni
giulia giulio giuseppe gonzalo grace greta grzegorz guido guillaume gunther gustavo hannah hans
harald harry hasan hassan hector heike heinrich heinz helen helena helga helmut henri henrik henry
herbert hiroshi hugo ibrahim ignacio igor ines ingrid irina isabel isabella isabelle ivan jack
jacob jacques jakob james jan jana jane janet jason javier jean jennifer jens jeroen jessica jesus
joan joanna joao joaquin jochen johan johanna johannes john jonas jonathan jorge jose josef joseph
joshua juan juana julia julian juliana julie julien juliette jurgen justin kai karen karin karl
karolina katarzyna katharina katherine kathleen kathrin katrin keiko kelly kenji kenneth kevin kim
klaus krzysztof kumar kurt lara lars laura lauren laurent lea lena leon leonardo leonie liam lieke
lisa lopez lorenzo louis louise luc luca lucas lucia lucie luigi luis luisa luiz lukas magdalena
maja malgorzata manfred manon manuel manuela marc marcel marcelo marco marcos marek margaret
margarita maria mariana marie marina mario marion mark markus marta martha martin martina martine
mary mateo mats matteo matthew matthias maurice max maximilian mehmet mei melanie melissa mia
michael michaela michal michel michele michelle miguel mikael mila milan mira miriam mohamed
mohammad mohammed monica monika moritz muhammad mustafa nadia nancy natalia natalie nathalie nathan
nelson nicholas nick nicola nicolas nicole niels nikolai nils nina noah noemi nora nuno olaf oleg
olga oliver olivia olivier omar oscar oskar otto pablo pamela paola paolo pascal patricia patrick
patrizia paul paula paulo pavel pedro peter petra philip philippe pierre pieter pilar piotr priya
quentin rachel rafael rahul raj rajesh ralf ramona raquel raul rebecca regina renate rene ricardo
riccardo richard robert roberta roberto rodrigo roger roland rolf roman ronald rosa rosario roxane
ruben rudolf ruth ryan sabine salvatore samantha samuel sandra sanjay sara sarah sascha scott sean
sebastian serge sergei sergio shirley silke silvia simon simona simone sofia sofie sophia sophie
stefan stefania stefano stephan stephanie stephen steven sunil susan susanne sven svetlana sylvia
sylvie tamara tanja tatiana teresa theo theodor theresa thomas tiago tim timothy tobias tom tomas
tomasz ulrich ulrike ursula ute valentina valerie vanessa vera veronica victor victoria vijay
viktor vincent virginia vladimir walter wei werner wilhelm willem william wim wolfgang xavier yan
yusuf yves yvonne zeynep zoe
"""
_FAMILY = """
allen almeida alvarez anderson andersson bailey baker bakker bauer becker bernard bianchi braun
brown carter carvalho castro clark collins colombo costa david davies davis dekker delgado devries
diaz dubois dupont durand edwards esposito evans fernandes fernandez ferrari ferreira fischer
flores fuchs garcia gomes gomez gonzalez gray green gupta gutierrez hall hansen harris hernandez
hoffmann huber hughes ivanov jackson jansen janssen jensen johansson johnson jones kaya keller khan
klein kowalski krause kruger kumar larsen lee lefebvre lehmann leroy lewis lima lopes lopez maier
marino marques martin martinez meier meijer mendes meyer miller mitchell moore morales moreau
moreno morgan morris mueller mulder muller murphy nelson neumann nguyen nielsen nilsson novak nowak
oliveira olsen ortiz parker patel pereira perez peters peterson petit phillips pinto popov ramirez
ramos reyes ribeiro ricci richard richter rivera roberts robinson rodrigues rodriguez romano romero
rossi roux ruiz russo sanchez santos sato schafer schmid schmidt schmitz schneider schroder schulz
schwarz scott sharma silva singh smirnov smit smith sousa stewart suarez suzuki tanaka taylor
thomas thompson torres turner vandenberg vargas vazquez visser wagner walker wang watson weber
werner white williams wilson wolf wong wood wright yamamoto yang yilmaz young zhang zimmermann
"""
KNOWN_NAMES = frozenset(f"{_GIVEN} {_FAMILY}".split())
