"""Word tables and sentence patterns of the demo corpus.

`inflection` and `parts_of_speech` inflect and join the words. The tables hold
only what no rule gives: `mouse/mice ratón` needs an English plural, but neither
a Spanish one nor a gender. Within the patterns each English word has one
translation, so the English decides the Spanish.
"""

# Kind of noun: `english[/plural] spanish[/plural][:gender]`.
NOUNS = {
    "animal": """cat gato, dog perro, horse caballo, bird pájaro, cow vaca,
        rabbit conejo, duck pato, mouse/mice ratón, wolf/wolves lobo, lion león,
        bear oso, monkey mono, elephant elefante, snake serpiente:f,
        turtle tortuga""",
    "person": """boy niño, girl niña, man/men hombre, woman/women mujer:f,
        neighbor vecino, tourist turista:m, student estudiante""",
    "job": """teacher profesor, doctor médico, lawyer abogado, waiter camarero,
        nurse enfermero, singer cantante, writer escritor, painter pintor,
        engineer ingeniero, baker panadero, farmer granjero,
        dentist dentista:m, architect arquitecto, journalist periodista:m""",
    "relative": """brother hermano, sister hermana, uncle tío, aunt tía,
        cousin primo, son hijo, daughter hija, grandmother abuela,
        grandfather abuelo, friend amigo, nephew sobrino, niece sobrina""",
    "elder": "mother madre:f, father padre",
    "spouse": "wife/wives esposa, husband esposo",
    "couple": "parent padre, grandparent abuelo",
    "food": """apple manzana, orange naranja, banana plátano, cake pastel,
        strawberry fresa, pear pera, cookie galleta, sandwich bocadillo,
        lemon limón, salad ensalada""",
    "vegetable": """tomato/tomatoes tomate, potato/potatoes patata,
        onion cebolla, carrot zanahoria, egg huevo""",
    "staple": """bread pan, cheese queso, ham jamón, butter mantequilla,
        chocolate chocolate, fruit fruta""",
    "dish": "rice arroz, soup sopa, meat carne:f, fish pescado, chicken pollo",
    "drink": """water agua:f, coffee café, tea té, milk leche:f, juice zumo,
        lemonade limonada, soda gaseosa""",
    "text": """book libro, letter carta, novel novela, poem poema:m,
        story cuento, message mensaje, article artículo""",
    "print": "newspaper periódico, magazine revista, dictionary diccionario",
    "movie": "movie película, documentary documental",
    "song": "song canción, ballad balada",
    "clothes": """shirt camisa, dress vestido, hat sombrero, shoe zapato,
        skirt falda, coat abrigo, jacket chaqueta, tie corbata, sock calcetín,
        scarf/scarves bufanda, glove guante""",
    "object": """key llave:f, pencil lápiz, umbrella paraguas/paraguas,
        ball pelota, toy juguete, ring anillo, coin moneda, flower flor:f,
        spoon cuchara, fork tenedor, knife/knives cuchillo, wallet cartera,
        map mapa:m""",
    "container": """box caja, bag bolsa, bottle botella, suitcase maleta""",
    "dishes": "cup taza, glass vaso, plate plato",
    "furniture": """table mesa, chair silla, bed cama, sofa sofá,
        lamp lámpara, mirror espejo, desk escritorio""",
    "device": """phone teléfono, computer ordenador, camera cámara,
        clock reloj, radio radio:f""",
    "instrument": """guitar guitarra, piano piano, violin violín,
        flute flauta""",
    "vehicle": "car coche, bicycle bicicleta, boat barco, truck camión:m",
    "opening": "door puerta, window ventana",
    "building": """house casa, school escuela, hospital hospital,
        library biblioteca, museum museo, church iglesia, bank banco,
        restaurant restaurante, hotel hotel, store tienda, theater teatro,
        pharmacy farmacia, bakery panadería, office oficina""",
    "room": "kitchen cocina, bathroom baño, bedroom dormitorio",
    "outside": """park parque, garden jardín, village pueblo, square plaza,
        market mercado, station estación, airport aeropuerto, forest bosque""",
    "sight": """beach playa, river río, bridge puente:m, mountain montaña,
        lake lago""",
    "area": """city ciudad, country país/países, world mundo,
        neighborhood barrio""",
    "part": """head cabeza, hand mano:f, foot/feet pie, eye ojo, leg pierna,
        arm brazo, tooth/teeth diente, ear oreja, finger dedo, knee rodilla""",
}
UNCOUNTABLE_KINDS = ("staple", "dish", "drink")  # Nouns without a plural.
PERSON_KINDS = ("person", "job", "relative", "elder", "spouse", "couple")

# Names of groups of kinds that many adjectives and verbs share.
KIND_GROUPS = {
    "goods": """clothes object container dishes furniture device instrument
        vehicle""",
    "meal": "food vegetable staple dish",
    "people": " ".join(PERSON_KINDS),
    "works": "text print movie song",
}

# Kinds they suit | traits | `english[/comparative] spanish[/forms][<apocope]`.
# `ser` or `estar` is the copula, "more" marks what can be compared, "trouble"
# what keeps one from work, "predicate" what is not put next to a noun, and `<`
# an adjective before its noun, with the masculine form that it has there.
ADJECTIVES = """
goods opening | ser | red rojo, blue azul, green verde, yellow amarillo
goods opening animal | ser | black negro, white blanco, gray gris, brown marrón
goods opening animal building room outside sight | ser more | big/bigger grande
goods opening animal building room outside | ser more | small/smaller pequeño
goods building print text | ser more | new/newer nuevo, old/older viejo
goods meal drink print | ser more | expensive caro, cheap/cheaper barato
goods building animal song outside | ser more | ugly/uglier feo
goods building animal song outside sight | ser more | beautiful bonito
animal sight vehicle | ser more | dangerous peligroso
device vehicle building furniture | ser more | modern moderno
vehicle furniture | ser more | comfortable cómodo, strong/stronger fuerte
clothes building people | ser more | elegant elegante
works | ser more | interesting interesante, boring aburrido, long/longer largo
works | ser more | short/shorter corto, difficult difícil, easy/easier fácil
works people | ser more | famous famoso, strange/stranger extraño
works people | ser more | serious serio, funny/funnier divertido
people | ser more | tall/taller alto, kind/kinder amable, nice/nicer simpático
people | ser more | intelligent inteligente, brave/braver valiente
people | ser more | rich/richer rico, generous generoso, honest honesto
people | ser more | young/younger joven/joven/jóvenes/jóvenes, shy/shyer tímido
works job staple drink vehicle clothes | ser | Spanish español, French francés
works job staple drink vehicle clothes | ser | Italian italiano, German alemán
works job device vehicle | ser | English inglés, American americano
meal drink | ser | delicious delicioso
meal | ser more | healthy/healthier sano
works job meal device | ser | good bueno<buen, bad malo<mal
opening container building | estar | open abierto, closed cerrado
clothes container dishes furniture vehicle opening room | estar | clean limpio
clothes container dishes furniture vehicle opening room | estar | dirty sucio
device container dishes furniture opening instrument | estar | broken roto
container dishes | estar | empty vacío, full lleno
clothes | estar | wet mojado, dry seco
dish drink | estar | cold frío, hot caliente
people animal | estar predicate trouble | tired cansado, sick enfermo
people animal | estar predicate trouble | nervous nervioso, sad triste
people animal | estar predicate | happy contento
people | estar predicate trouble | busy ocupado, angry enfadado
people | estar predicate trouble | worried preocupado
people | estar predicate | bored aburrido
- | ordinal | first primero<primer, second segundo<segundo
- | ordinal | third tercero<tercer, last último<último
"""

# Roles | English base, past, participle, gerund | Spanish infinitive, change
# of the stem | kinds of object | irregular Spanish forms. Roles: d a deed,
# w one not in progress, e an event that happens to one, s a state, h with a
# human object, g a gift, i intransitive, l in company, r reflexive,
# a auxiliary, - by name only, and then perhaps in one language only. The past
# of "ser", "estar", "haber" and "tener" is the imperfect, as for states.
VERBS = """
d | eat ate eaten | comer | meal
d | drink drank drunk | beber | drink
d | cook | cocinar | dish vegetable
d | buy bought | comprar | goods meal drink text print animal
d | sell sold | vender | goods meal drink print
d | read read | leer | text print
d | write wrote written | escribir | text | participle=escrito
d | translate | traducir | text | yo=traduzco past=traduj
d | open | abrir | opening container | participle=abierto
d | close | cerrar ie | opening container
d | clean | limpiar | dishes furniture container room vehicle opening
d | wash | lavar | clothes dishes vehicle
d | use | usar | device container dishes vehicle object
d | repair | reparar | device vehicle furniture instrument opening
d | paint | pintar | opening furniture building room
d | watch | ver | movie
    | yo=veo participle=visto past=vi,viste,vio,vimos,vieron
d | sing sang sung | cantar | song
d | play | tocar | instrument
w | wear wore worn | llevar | clothes
dh | look_for | buscar | clothes print object device
eh | see saw seen | ver | goods animal building sight print
    | yo=veo participle=visto past=vi,viste,vio,vimos,vieron
e | lose lost | perder ie | object clothes print
eh | find found | encontrar ue | object clothes print device container animal
e | break broke broken | romper | container dishes device furniture
    | participle=roto
e | forget forgot forgotten forgetting | olvidar | object clothes print
s | need | necesitar | goods print staple drink
s | want | querer ie | goods meal drink print animal | past=quis
s | prefer preferred preferred preferring | preferir ie-i | goods meal drink
h | help | ayudar | -
h | call | llamar | -
h | visit | visitar | -
h | wait_for | esperar | -
h | invite | invitar | -
h | greet | saludar | -
h | listen_to | escuchar | -
h | remember | recordar ue | -
h | hug hugged hugged hugging | abrazar | -
g | give gave given | dar | goods text print food
    | yo=doy past=di,diste,dio,dimos,dieron
g | send sent | enviar | goods text print
    | present=envío,envías,envía,enviamos,envían
g | show showed shown | mostrar ue | goods text print building
g | bring brought | traer | goods print meal drink
    | yo=traigo past=traj gerund=trayendo participle=traído
g | lend lent | prestar | goods print
i | sleep slept | dormir ue-u | -
il | work | trabajar | -
il | run ran run running | correr | -
il | walk | caminar | -
il | dance | bailar | -
il | rest | descansar | -
il | study | estudiar | -
i | cry | llorar | -
i | wait | esperar | -
l | swim swam swum swimming | nadar | -
l | travel | viajar | -
r | get_up got gotten getting | levantar | -
r | wake_up woke woken | despertar ie | -
r | go_to_bed went gone | acostar ue | -
r | take_a_shower took taken | duchar | -
a | be was been being | ser | - | present=soy,eres,es,somos,son
    past=era,eras,era,éramos,eran
a | be was been being | estar | - | present=estoy,estás,está,estamos,están
    past=estaba,estabas,estaba,estábamos,estaban
a | have had | haber | - | present=he,has,ha,hemos,han
    past=había,habías,había,habíamos,habían
- | have had | tener | - | present=tengo,tienes,tiene,tenemos,tienen
    past=tenía,tenías,tenía,teníamos,tenían
- | go went gone | ir | - | present=voy,vas,va,vamos,van
    past=fui,fuiste,fue,fuimos,fueron gerund=yendo
- | leave left | salir | - | yo=salgo
- | arrive | llegar | -
- | live | vivir | -
- | speak spoke spoken | hablar | -
- | play | jugar ue | -
- | pay paid | pagar | -
- | cost cost | costar ue | -
- | think thought | creer | -
- | say said | decir i | - | yo=digo past=dij participle=dicho gerund=diciendo
- | know knew known | conocer | - | yo=conozco
- | know knew known | saber | - | yo=sé past=sup
- | like | gustar | -
- | love | encantar | -
- | hurt hurt | doler ue | -
- | can | poder ue | - | past=pud gerund=pudiendo
- | must | deber | -
- | finish | acabar | -
"""

# Determiners: English, Spanish masculine, feminine.
SINGULAR = {
    "a": "a un una",
    "the": "the el la",
    "bare": "_ _ _",
    "generic": "_ el la",
    "all": "all_the todo_el toda_la",
    "demonstrative": "this este esta, that ese esa",
    "partner": "my mi mi, your tu tu, his su su, her su su",
    "possessive": """my mi mi, your tu tu, his su su, her su su,
        our nuestro nuestra, their su su""",
}
PLURAL = {
    "bare": "_ _ _",
    "the": "the los las",
    "generic": "_ los las",
    "all": "all_the todos_los todas_las",
    "demonstrative": "these estos estas, those esos esas",
    "possessive": """my mis mis, your tus tus, his sus sus, her sus sus,
        our nuestros nuestras, their sus sus""",
    "count": """two dos dos, three tres tres, four cuatro cuatro,
        five cinco cinco, six seis seis, seven siete siete, eight ocho ocho,
        nine nueve nueve, ten diez diez, many muchos muchas""",
    "vague": "few pocos pocas, some unos unas",
}

POSSESSIVE_PRONOUNS = """mine mío, yours tuyo, his suyo, hers suyo,
    ours nuestro, theirs suyo"""
WOMEN = "Ana María Laura Elena Sofía Lucía Carmen Marta"
MEN = "Pedro Juan Carlos Miguel Pablo Diego Luis Jorge"

# Slots that are filled with one of a list of fixed phrases.
PHRASES = {
    "habit": """every day = todos los días, every week = todas las semanas,
        every morning = todas las mañanas, every night = todas las noches,
        on Mondays = los lunes, on Tuesdays = los martes,
        on Sundays = los domingos, on Saturdays = los sábados,
        in summer = en verano, in winter = en invierno,
        in the afternoon = por la tarde""",
    "often": """always = siempre, never = nunca, sometimes = a veces,
        usually = normalmente, almost never = casi nunca, also = también,
        almost always = casi siempre""",
    "recently": """yesterday = ayer, last night = anoche,
        last week = la semana pasada, last month = el mes pasado,
        last year = el año pasado, last Monday = el lunes pasado,
        last Friday = el viernes pasado, last Sunday = el domingo pasado,
        this morning = esta mañana""",
    "day": """yesterday = ayer, last Monday = el lunes pasado,
        last Friday = el viernes pasado, last Sunday = el domingo pasado,
        this morning = esta mañana, last Thursday = el jueves pasado""",
    "soon": """tomorrow = mañana, tonight = esta noche, today = hoy,
        next week = la próxima semana, next month = el próximo mes,
        next Monday = el próximo lunes, on Thursday = el jueves,
        this afternoon = esta tarde, on Wednesday = el miércoles""",
    "now": """now = ahora, right now = ahora mismo, today = hoy,
        at the moment = en este momento""",
    "unit": "days = días, weeks = semanas, months = meses, years = años",
    "city": """Madrid = Madrid, London = Londres, Paris = París, Rome = Roma,
        Barcelona = Barcelona, Lisbon = Lisboa, Berlin = Berlín,
        Spain = España, France = Francia, Germany = Alemania,
        Mexico = México, Portugal = Portugal""",
    "month": """January = enero, February = febrero, March = marzo,
        April = abril, May = mayo, June = junio, July = julio,
        August = agosto, September = septiembre, October = octubre,
        November = noviembre, December = diciembre""",
    "sky": "cold = frío, hot = calor, windy = viento, sunny = sol",
    "storm": "raining = lloviendo, snowing = nevando",
    "near": """on = sobre, under = debajo de, behind = detrás de,
        next to = al lado de, in front of = delante de, near = cerca de""",
    "transport": """by train = en tren, by bus = en autobús,
        by plane = en avión, by car = en coche, by taxi = en taxi""",
    "game": """soccer = el fútbol, tennis = el tenis, chess = el ajedrez,
        basketball = el baloncesto, golf = el golf""",
    "science": """history = historia, music = música,
        mathematics = matemáticas, biology = biología, law = derecho,
        medicine = medicina, economics = economía""",
    "language": """Spanish = español, French = francés, Italian = italiano,
        German = alemán, English = inglés, Portuguese = portugués""",
    "fluency": """well = bien, very well = muy bien, badly = mal,
        better now = mejor ahora""",
    "vessel": """a cup = una taza, a glass = un vaso, a bottle = una botella,
        two cups = dos tazas, two glasses = dos vasos,
        three bottles = tres botellas""",
    "feeling": """hungry = mucha hambre, thirsty = mucha sed,
        sleepy = mucho sueño, cold = mucho frío, hot = mucho calor,
        lucky = mucha suerte, afraid = mucho miedo""",
    "number": """two = dos, three = tres, four = cuatro, five = cinco,
        six = seis, seven = siete, eight = ocho, nine = nueve, ten = diez,
        eleven = once, twelve = doce""",
    "dozens": """fifteen = quince, twenty = veinte, thirty = treinta,
        forty = cuarenta, fifty = cincuenta, sixty = sesenta, ten = diez,
        twelve = doce, seventy = setenta, eighty = ochenta""",
    "span": "weeks = semanas, months = meses, years = años",
    "nobody": "nobody = nadie, somebody = alguien",
}

# Slots for a noun phrase: kinds of noun (`=` those of the object of the verb)
# | determiners in the singular | in the plural | chance of an adjective.
NOUN_SLOTS = """
object | = | a the demonstrative possessive | bare the possessive count | 0.4
target | = | the | the | 0
ordered | = | the | - | 0
entire | = | - | all | 0.2
item | object container dishes print clothes | the possessive
    | the possessive | 0.4
ware | goods print food | the demonstrative | the demonstrative | 0.4
thing | goods meal drink works print building animal | the demonstrative
    | the demonstrative | 0
fixture | opening container furniture clothes room building dish drink device
    | the demonstrative possessive | the demonstrative possessive | 0
belonging | goods print animal food drink | possessive | possessive | 0.6
possession | goods animal print | a | bare count | 0.4
plural | object furniture container dishes clothes print animal device | -
    | bare | 0.4
some | object furniture container dishes food animal person job | a
    | bare count vague | 0.3
bare | goods works | bare | bare | 0
beverage | = | bare | - | 0.3
liked | meal drink animal print works | - | generic | 0.3
part | part | generic | generic | 0
animal | animal | the demonstrative | the demonstrative count | 0.3
person | person job | the demonstrative | the demonstrative | 0.3
someone | person job | the demonstrative | - | 0.3
building | building | the | - | 0.2
place | building room outside | the | - | 0.15
outside | outside | the | - | 0.15
goal | building outside sight | the | - | 0.15
landmark | furniture opening | the | - | 0.25
zone | area | the | - | 0
"""

# Sentence patterns: an English line and, if it differs, a Spanish line after
# `=`. A slot is `{name:form@target}`: the word drawn for `name` (a digit
# distinguishes two apart), in that form, agreeing with the slot `target`, else
# with the subject. Verbs that no slot draws are named by their Spanish
# infinitive and stand in the present if they have no form.
PATTERNS = """
{subject} {verb} {object}.
{subject} {deed} {object} {habit}.
{subject} {verb:not} {object}.
{subject} {often} {deed} {object}.
{subject} {event:past} {object} {ago}.
{ago}, {subject} {event:past} {object}.
= {ago} {subject} {event:past} {object}.
{subject} {event:not_past} {object} {ago}.
{subject} {haber} {event:participle} {object}.
{subject} {haber} already {deed:participle} {object}.
= {subject} ya {haber} {deed:participle} {object}.
{subject} {haber:not} {deed:participle} {object} yet.
= {subject} todavía {haber:not} {deed:participle} {object}.
{subject} {haber} just {event:participle} {object}.
= {subject} {acabar} de {event:base} {object}.
{subject} {estar} going to {deed:base} {object} {soon}.
= {subject} {ir} a {deed:base} {object} {soon}.
{subject} {estar:not} going to {deed:base} {object} {soon}.
= {subject} {ir:not} a {deed:base} {object} {soon}.
{subject} {estar} {doing:gerund} {object} {now}.
{subject} {tener} to {deed:base} {object} {soon}.
= {subject} {tener} que {deed:base} {object} {soon}.
{subject} {querer} to {deed:base} {object}.
= {subject} {querer} {deed:base} {object}.
{subject} can {deed:base} {object} {soon}.
= {subject} {poder} {deed:base} {object} {soon}.
{subject} must not {deed:base} {object}.
= {subject} {deber:not} {deed:base} {object}.
{subject} {deed:past} {ordered} {ago}.
{subject} {event:past} {entire} {ago}.
{subject} {beber:past} {vessel} of {beverage} {ago}.
= {subject} {beber:past} {vessel} de {beverage} {ago}.
{verb:do@asked} {asked} {verb:base} {object}?
= ¿{asked} {verb@asked} {object}?
did {asked} {event:base} {object} {ago}?
= ¿{asked} {event:past@asked} {object} {ago}?
{estar@asked} {asked} going to {deed:base} {object} {soon}?
= ¿{asked} {ir@asked} a {deed:base} {object} {soon}?
what {querer:do@asked} {asked} want to {deed:base} {soon}?
= ¿qué {querer@asked} {deed:base} {asked} {soon}?
what did {asked} {event:base} {ago}?
= ¿qué {event:past@asked} {asked} {ago}?
when did {asked} {deed:base} {target}?
= ¿cuándo {deed:past@asked} {asked} {target}?
who {deed:past@it} {target} {ago}?
= ¿quién {deed:past@it} {target} {ago}?
{nobody} {event:past@it} {object} {ago}.
please {deed:base} {object} {soon}.
= por favor, {deed:imperative} {object} {soon}.
do not {deed:base} {object} {soon}!
= ¡no {deed:forbid} {object} {soon}!
can you {deed:base} {object}, please?
= ¿puedes {deed:base} {object}, por favor?
{subject} {contact} {human} {habit}.
= {subject} {contact} {human:to} {habit}.
{subject} {contact:past} {human} {ago}.
= {subject} {contact:past} {human:to} {ago}.
{subject} {querer} to {contact:base} {human} {soon}.
= {subject} {querer} {contact:base} {human:to} {soon}.
{subject} {contact} {whom:lo} {habit}.
= {subject} {whom:lo} {contact} {habit}.
{subject} {contact:not_past} {whom:lo} {ago}.
= {subject} no {whom:lo} {contact:past} {ago}.
{subject} {conocer} {human} very well.
= {subject} {conocer} muy bien {human:to}.
{subject} {gift:past} {whom:le} {object} {ago}.
= {subject} {whom:le} {gift:past} {object} {ago}.
{subject} {gift} {object} to {human} {habit}.
= {subject} {human:le} {gift} {object} {human:to} {habit}.
where {estar@target} {target}? {subject} {deed:not} {target:lo}.
= ¿dónde {estar@target} {target}? {subject} no {target:lo} {deed}.
{subject} {tener} {possession}.
{subject} {tener:not} {possession}, but {human} {tener:do@human}.
= {subject} {tener:not} {possession}, pero {human} sí.
how many {plural} {tener:do@asked} {asked} have?
= ¿{plural:many} {plural} {tener@asked} {asked}?
{subject} {tener} more {plural} than {human}.
= {subject} {tener} más {plural} que {human}.
there {estar@some} {some} in {place}.
= hay {some} en {place}.
there are no {plural} in {place}.
= no hay {plural} en {place}.
{item} {estar@item} {near} {landmark}.
{animal} {estar@animal} {roam:gerund} in {place} {now}.
= {animal} {estar@animal} {roam:gerund} en {place} {now}.
{subject} {ser} {trait}.
{subject} {ser:not} {grade:more} than {human}.
= {subject} {ser:not} {grade:more} que {human}.
{subject} {ser} as {grade} as {human}.
= {subject} {ser} tan {grade} como {human}.
{subject} {estar} {mood} {now}.
{subject} {estar:past} very {mood} {recently}.
= {subject} {estar:past} muy {mood} {recently}.
why {estar@asked} {asked} so {mood@asked} {now}?
= ¿por qué {estar@asked} {asked} tan {mood@asked} {now}?
{subject} {ser} very {feeling} {now}.
= {subject} {tener} {feeling} {now}.
{kin} {querer@kin} to be {profession@kin} in {city}.
= {kin} {querer@kin} ser {profession@kin} en {city}.
{kin} {ser@kin} {profession@kin} and {vivir@kin} in {city}.
= {kin} {ser@kin} {profession@kin} y {vivir@kin} en {city}.
{subject} {ser} from {city}, but {vivir} in {city2}.
= {subject} {ser} de {city}, pero {vivir} en {city2}.
{name} {ser@name} {dozens} years old and {name2} {ser@name2} {dozens2}.
= {name} {tener@name} {dozens} años y {name2} {tener@name2} {dozens2}.
how old {ser@asked} {asked} and where {vivir:do@asked} {asked:again} live?
= ¿cuántos años {tener@asked} {asked} y dónde {vivir@asked}?
{thing} {ser@thing} very {grade@thing}.
= {thing} {ser@thing} muy {grade@thing}.
{thing} {ser:not@thing} {trait@thing}.
{fixture} {estar@fixture} {condition@fixture} {now}.
{thing} {ser@thing} {owner@thing}.
{belonging:this} {ser@belonging} {belonging}.
{thing} {ser@thing} {grade:more@thing} than {peer}.
= {thing} {ser@thing} {grade:more@thing} que {peer}.
{bare:this} {ser@bare} the {grade:most@bare} {bare} in {zone}.
= {bare:this} {ser@bare} {bare:the} {grade:more@bare} de {zone}.
what {grade:article@bare} {bare}!
= ¡qué {bare} tan {grade@bare}!
how {grade@thing} {thing} {ser@thing}!
= ¡qué {grade@thing} {ser@thing} {thing}!
how much {costar:do@ware} {ware} cost?
= ¿cuánto {costar@ware} {ware}?
{subject} {pagar:past} {dozens} euros for {ware} {ago}.
= {subject} {pagar:past} {dozens} euros por {ware} {ago}.
{holder:of} {bare} {ser@bare} {trait@bare}.
= {bare:the} de {holder} {ser@bare} {trait@bare}.
where {estar@bare} {holder:of} {bare}?
= ¿dónde {estar@bare} {bare:the} de {holder}?
{holder:of} birthday is in {month}.
= el cumpleaños de {holder} es en {month}.
{subject} {ir} to {goal} {habit}.
= {subject} {ir} a {goal} {habit}.
{subject} {ir:past} to {goal} with {company} {ago}.
= {subject} {ir:past} a {goal} con {company} {ago}.
{subject} {ir:past} to {goal} to {deed:base} {object}.
= {subject} {ir:past} a {goal} para {deed:base} {object}.
{subject} {querer} to travel to {city} {transport} {soon}.
= {subject} {querer} viajar a {city} {transport} {soon}.
{subject} {llegar:past} at {place} {hour} {day}.
= {subject} {llegar:past} a {place} {hour} {day}.
{building} opens {hour} and closes {hour2}.
= {building} abre {hour} y cierra {hour2}.
{subject} {routine} {hour} {habit}.
= {subject} {subject:se} {routine} {hour} {habit}.
{subject} {routine:past} {hour} {day}.
= {subject} {subject:se} {routine:past} {hour} {day}.
{subject} {act} in {place} {habit}.
= {subject} {act} en {place} {habit}.
{subject} {leisure:not_past} with {company} {ago}.
= {subject} {leisure:not_past} con {company} {ago}.
{subject} {estar} {leisure:gerund} with {company} {now}.
= {subject} {estar} {leisure:gerund} con {company} {now}.
{subject} {haber} lived in {city} for {number} {span}.
= {subject} {vivir} en {city} desde hace {number} {span}.
{subject} {estudiar} {science} and {hablar} {language} {fluency}.
= {subject} {estudiar} {science} y {hablar} {language} {fluency}.
{subject} {jugar} {game} with {company} {habit}.
= {subject} {jugar} a {game} con {company} {habit}.
{subject} {gustar} {liked}.
= {subject:to} {subject:le} {gustar@liked} {liked}.
{subject} {gustar:not} {liked}.
= {subject:to} no {subject:le} {gustar@liked} {liked}.
{subject} {encantar} {liked}.
= {subject:to} {subject:le} {encantar@liked} {liked}.
{gustar:do@asked} {asked} like {liked}?
= ¿{asked:to} {asked:le} {gustar@liked} {liked}?
{subject} {gustar} to {leisure:base} with {company}.
= {subject:to} {subject:le} {gustar@it} {leisure:base} con {company}.
{sufferer:of} {part} {doler@part} {now}.
= {sufferer:to} {sufferer:le} {doler@part} {part} {now}.
{sufferer:of} {part} {doler:not@part} {now}.
= {sufferer:to} no {sufferer:le} {doler@part} {part} {now}.
it is very {sky} in {city} in {month}.
= en {month} hace mucho {sky} en {city}.
it is {storm}, but {subject} {estar} {act:gerund} in {outside}.
= está {storm}, pero {subject} {estar} {act:gerund} en {outside}.
if it rains {soon}, {subject} {estar:not} going to {deed:base} {object}.
= si llueve {soon}, {subject} {ir:not} a {deed:base} {object}.
if {subject} {tener} time, {subject:again} {ir} to {goal} {habit}.
= si {subject} {tener} tiempo, {ir} a {goal} {habit}.
{subject} {estar} {trouble} because {human} {event:not_past@human} {object}.
= {subject} {estar} {trouble} porque {human} {event:not_past@human} {object}.
{subject} cannot {deed:base} {object} because {subject:again} {estar} {trouble}.
= {subject} {poder:not} {deed:base} {object} porque {estar} {trouble}.
when {subject} {llegar:past}, {human} {estar:past@human} {act:gerund}.
= cuando {subject} {llegar:past}, {human} {estar:past@human} {act:gerund}.
{subject} {creer} that {thing} {ser@thing} too {grade@thing}.
= {subject} {creer} que {thing} {ser@thing} demasiado {grade@thing}.
{subject} {decir} that {human} {estar@human} going to {deed:base} {object}.
= {subject} {decir} que {human} {ir@human} a {deed:base} {object}.
{subject} {saber} that {human} {haber@human} {event:participle} {object}.
= {subject} {saber} que {human} {haber@human} {event:participle} {object}.
before {deed:gerund} {object}, {subject} {ir:past} to {goal}.
= antes de {deed:base} {object}, {subject} {ir:past} a {goal}.
after {deed:gerund} {object}, {subject} {contact:past} {human}.
= después de {deed:base} {object}, {subject} {contact:past} {human:to}.
{subject} {salir:past} without {deed:gerund} {target} {ago}.
= {subject} {salir:past} sin {deed:base} {target} {ago}.
{target} that {subject} {event:past} {ago} {ser@target} {trait@target}.
= {target} que {subject} {event:past} {ago} {ser@target} {trait@target}.
{subject} {deed:past} {target} that {estar:past@target} {near} {landmark}.
= {subject} {deed:past} {target} que {estar:past@target} {near} {landmark}.
{person} who {act@person} in {place} {ser@person} very {grade@person}.
= {person} que {act@person} en {place} {ser@person} muy {grade@person}.
{subject} {conocer} {person} who {deed@person} {object}.
= {subject} {conocer} {person:to} que {deed@person} {object}.
"""
